package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// defaultMaxPages is the default of Pagination.MaxPages.
const defaultMaxPages = 10

// pages sends a request and those of further pages, and returns the first result with
// the items of all pages.
func (a *api) pages(ctx context.Context, r *request) (any, error) {
	declared := a.declared.Pagination
	var first any
	var all []any
	size, most := 0, cmp.Or(declared.MaxPages, defaultMaxPages)
	for number := 1; ; number++ {
		page, err := a.send(ctx, r)
		if err != nil {
			return nil, err
		}
		if size += page.size; size > maxAnswer {
			return nil, a.pageError(r.url, "the pages are longer than %d MiB", maxAnswer>>20)
		}
		items, ok := fieldOf(page.value, declared.Items).([]any)
		if !ok && page.value != nil {
			return nil, a.pageError(r.url, "page %d has no list at %s", number, itemsPlace(declared.Items))
		}
		all = append(all, items...)
		if first == nil {
			first = page.value
		}
		next, err := a.nextPage(r.url, page, len(items))
		if err != nil {
			return nil, err
		}
		switch {
		case next == nil || number == most && declared.AtLimit == "truncate":
			return withItems(first, declared.Items, all), nil
		case number == most:
			return nil, a.pageError(r.url, "the result has more than the %d pages of max_pages", most)
		case next.String() == r.url.String():
			return nil, a.pageError(r.url, "page %d names itself as the next page", number)
		}
		following := *r
		following.url = next
		r = &following
	}
}

// itemsPlace names a field in messages.
func itemsPlace(path string) string {
	if path == "" {
		return "the top level of the answer"
	}
	return path
}

func (a *api) pageError(u *url.URL, format string, args ...any) *Error {
	return &Error{Tool: a.info.ID, Method: a.method, URL: httpx.Server(u), Message: fmt.Sprintf(format, args...)}
}

// nextPage returns the address of the page after one with n items, nil after the last one.
func (a *api) nextPage(u *url.URL, page *response, n int) (*url.URL, error) {
	declared := a.declared.Pagination
	if declared.More != "" && fieldOf(page.value, declared.More) != true {
		return nil, nil
	}
	switch declared.Type {
	case spec.PagesByLink:
		address := nextLink(page.header.Values("Link"))
		if declared.Next != "" {
			address = cursorText(fieldOf(page.value, declared.Next))
		}
		return a.linkedPage(u, address)
	case spec.PagesByCursor:
		cursor := cursorText(fieldOf(page.value, declared.Next))
		if cursor == "" {
			return nil, nil
		}
		return withParameter(u, declared.Parameter, cursor), nil
	}
	if n == 0 {
		return nil, nil
	}
	at, step := 1, 1
	if declared.Type == spec.PagesByOffset {
		at, step = 0, n
	}
	if given := u.Query().Get(declared.Parameter); given != "" {
		var err error
		if at, err = strconv.Atoi(given); err != nil {
			return nil, &ArgumentError{a.info.ID, declared.Parameter, "is not a number, so the next page is not known"}
		}
	}
	return withParameter(u, declared.Parameter, strconv.Itoa(at+step)), nil
}

// linkedPage returns the address of a page that a server names; it must be on that server.
func (a *api) linkedPage(u *url.URL, address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	next, err := u.Parse(address)
	if err != nil {
		return nil, a.pageError(u, "the address of the next page is not a URL")
	}
	if next.Scheme != u.Scheme || next.Host != u.Host {
		return nil, a.pageError(u, "the next page is on another server, %s", httpx.Server(next))
	}
	return next, nil
}

// nextLink returns the address of the link with rel=next of Link headers (RFC 8288).
func nextLink(headers []string) string {
	for _, header := range headers {
		for header != "" {
			_, rest, found := strings.Cut(header, "<")
			if !found {
				break
			}
			address, rest, found := strings.Cut(rest, ">")
			if !found {
				break
			}
			parameters, following, _ := strings.Cut(rest, "<")
			if following != "" {
				following = "<" + following
			}
			header = following
			for part := range strings.SplitSeq(strings.TrimRight(parameters, ", "), ";") {
				name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
				if strings.EqualFold(name, "rel") && strings.Contains(" "+strings.Trim(value, `"`)+" ", " next ") {
					return address
				}
			}
		}
	}
	return ""
}

// withParameter returns an address with a query parameter.
func withParameter(u *url.URL, name, value string) *url.URL {
	next := *u
	query := next.Query()
	query.Set(name, value)
	next.RawQuery = query.Encode()
	return &next
}

// cursorText returns the text of a cursor, empty for none.
func cursorText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// fieldOf returns the value at a path such as data.-1.id, nil for none. A number is the
// index of an item, from the end if it is negative.
func fieldOf(v any, path string) any {
	if path == "" {
		return v
	}
	for part := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if i < 0 {
				i += len(in)
			}
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// withItems returns the result with all items in place of those of the first page.
func withItems(first any, path string, all []any) any {
	if path == "" {
		return all
	}
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	if object, ok := fieldOf(first, parent).(map[string]any); ok {
		object[name] = all
	}
	return first
}
