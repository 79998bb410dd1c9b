package format

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
)

// convertEPUB returns the chapters of a book, each as a page.
func convertEPUB(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	if err := checkRights(a); err != nil {
		return nil, err
	}
	container, err := a.xml("META-INF/container.xml")
	if err != nil {
		return nil, err
	}
	files := container.all("rootfile")
	if len(files) == 0 {
		return nil, errors.New("no root file")
	}
	part := files[0].attr("full-path")
	book, err := a.xml(part)
	if err != nil {
		return nil, err
	}
	items := map[string]*element{}
	for _, item := range book.child("manifest").all("item") {
		items[item.attr("id")] = item
	}
	w := j.writer(ctx)
	for _, reference := range book.child("spine").all("itemref") {
		item := items[reference.attr("idref")]
		if item == nil || strings.Contains(" "+item.attr("properties")+" ", " nav ") || reference.attr("linear") == "no" {
			continue
		}
		if err := chapter(w, a, joinPart(path.Dir(part), item.attr("href"))); err != nil {
			return nil, err
		}
	}
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = collapseSpace(book.child("metadata", "title").content())
	return result, nil
}

// chapter writes a chapter. A chapter whose part is missing is left out.
func chapter(w *writer, a *archive, part string) error {
	data, err := a.read(part)
	if errors.Is(err, errNoPart) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := toUTF8(data, "utf-8")
	if err != nil {
		return err
	}
	w.page(strconv.Itoa(len(w.pages) + 1))
	_, err = writePage(w, text, pageOptions{})
	return err
}

// checkRights returns an error for a book that is encrypted. Embedded fonts may be
// obfuscated in any book.
func checkRights(a *archive) error {
	encryption, err := a.xml("META-INF/encryption.xml")
	if errors.Is(err, errNoPart) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, method := range encryption.all("EncryptionMethod") {
		if algorithm := method.attr("Algorithm"); !strings.HasPrefix(algorithm, "http://www.idpf.org/2008/embedding") && !strings.HasPrefix(algorithm, "http://ns.adobe.com/pdf/enc") {
			return errorf(Encrypted, "is protected by digital rights management, which cannot be removed here")
		}
	}
	return nil
}
