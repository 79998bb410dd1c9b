package scaffold

import (
	_ "embed" // for skillText
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/docs"
	"github.com/qtype-dev/qtype/examples"
)

// SkillFolder is the folder of the skill in a project, where coding assistants look for it.
const SkillFolder = ".claude/skills/qtype"

// skillText is the entry page of the skill.
//
//go:embed skills/qtype/SKILL.md
var skillText []byte

// skillPages are the pages of the documentation that the skill contains, as patterns.
var skillPages = []string{"reference/*.md", "testing.md", "troubleshooting.md"}

// pageAddress is where the pages are that the skill does not contain.
const pageAddress = "https://github.com/qtype-dev/qtype/blob/main/docs/"

// WriteSkills writes a skill for coding assistants below a folder: an entry page, and as its
// references the reference of the language, pages of the documentation, and the examples. It
// returns the paths of the files. Unless force is set, it writes nothing and returns an
// *ExistsError if one of them exists.
func WriteSkills(folder string, force bool) ([]string, error) {
	files, err := skillFiles()
	if err != nil {
		return nil, err
	}
	if force {
		for p := range files {
			if err := os.Remove(filepath.Join(folder, filepath.FromSlash(p))); err != nil && !os.IsNotExist(err) {
				return nil, err
			}
		}
	}
	return writeNew(folder, files)
}

// skillFiles returns the files of the skill by path, with slashes.
func skillFiles() (map[string][]byte, error) {
	files := map[string][]byte{SkillFolder + "/SKILL.md": skillText}
	for _, pattern := range skillPages {
		pages, err := fs.Glob(docs.Files, pattern)
		if err != nil {
			return nil, err
		}
		for _, page := range pages {
			text, err := docs.Files.ReadFile(page)
			if err != nil {
				return nil, err
			}
			files[path.Join(SkillFolder, "references", page)] = []byte(absoluteLinks(page, string(text)))
		}
	}
	documents, err := fs.Glob(examples.Files, "*/*.qtype*.yaml")
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		text, err := examples.Files.ReadFile(document)
		if err != nil {
			return nil, err
		}
		files[path.Join(SkillFolder, "references/examples", document)] = text
	}
	return files, nil
}

// pageLink is a link to a page of the documentation, relative to the page with the link.
var pageLink = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\]\(([^):#]+\.md)([^)]*)\)`) })

// absoluteLinks replaces the links of a page to pages that the skill does not contain.
func absoluteLinks(page, text string) string {
	return pageLink().ReplaceAllStringFunc(text, func(link string) string {
		m := pageLink().FindStringSubmatch(link)
		target := path.Join(path.Dir(page), m[1])
		for _, pattern := range skillPages {
			if ok, _ := path.Match(pattern, target); ok {
				return link
			}
		}
		if rest, ok := strings.CutPrefix(target, "../"); ok {
			return "](" + strings.TrimSuffix(pageAddress, "docs/") + rest + m[2] + ")"
		}
		return "](" + pageAddress + target + m[2] + ")"
	})
}
