package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

const (
	pngFile = "\x89PNG\r\n\x1a\n\x00\x00"
	pdfFile = "%PDF-1.7\n\x80"
	unknown = "\x00\x01\x02\x80"
)

// filePart is a file that a client attaches.
type filePart struct {
	kind, declared, content string // kind: image, or file
}

func (p filePart) base64() string { return base64.StdEncoding.EncodeToString([]byte(p.content)) }

func (p filePart) dataURL() string { return "data:" + p.declared + ";base64," + p.base64() }

// mediaProtocols returns, for each protocol, the path and the body of a request to flow repeat that
// attaches a file.
func mediaProtocols() map[string]func(filePart) (path, body string) {
	return map[string]func(filePart) (path, body string){
		"REST": func(p filePart) (string, string) {
			return "/flows/repeat", fmt.Sprintf(`{"message":{"role":"user","blocks":[{"type":"%s","mime_type":"%s","content":{"base64":"%s"}}]}}`, p.kind, p.declared, p.base64())
		},
		"chat completions": func(p filePart) (string, string) {
			part := `{"type":"file","file":{"file_data":"` + p.dataURL() + `"}}`
			if p.kind == "image" {
				part = `{"type":"image_url","image_url":{"url":"` + p.dataURL() + `"}}`
			}
			return "/v1/chat/completions", `{"model":"repeat","messages":[{"role":"user","content":[` + part + `]}]}`
		},
		"responses": func(p filePart) (string, string) {
			part := `{"type":"input_file","file_data":"` + p.dataURL() + `"}`
			if p.kind == "image" {
				part = `{"type":"input_image","image_url":"` + p.dataURL() + `"}`
			}
			return "/v1/responses", `{"model":"repeat","input":[{"role":"user","content":[` + part + `]}]}`
		},
		"AG-UI": func(p filePart) (string, string) {
			kind := map[string]string{"file": "document"}[p.kind]
			if kind == "" {
				kind = p.kind
			}
			return "/flows/repeat/agui", aguiOf("c", fmt.Sprintf(`{"id":"1","role":"user","content":[{"type":"%s","source":{"type":"data","value":"%s","mimeType":"%s"}}]}`, kind, p.base64(), p.declared), "")
		},
		"AI SDK": func(p filePart) (string, string) {
			return "/flows/repeat/stream", fmt.Sprintf(`{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"file","mediaType":"%s","url":"data:;base64,%s"}]}]}`, p.declared, p.base64())
		},
		"A2A": func(p filePart) (string, string) {
			return "/flows/repeat/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"raw":"%s","mediaType":"%s"}]}}}`, p.base64(), p.declared)
		},
	}
}

// TestMedia_Messages attaches files with wrong, missing and unknown media types: the content decides in
// each protocol.
func TestMedia_Messages(t *testing.T) {
	for name, request := range mediaProtocols() {
		for _, c := range []struct{ declared, content, want string }{
			{"image/png", pngFile, "image image/png"},
			{"image/jpeg", pngFile, "image image/png"},
			{"application/pdf", pngFile, "image image/png"},
			{"text/plain", pngFile, "image image/png"},
			{"", pngFile, "image image/png"},
			{"application/octet-stream", pngFile, "image image/png"},
			{"application/x-unheard-of", pngFile, "image image/png"},
			{"image/png", pdfFile, "file application/pdf"},
			{"", pdfFile, "file application/pdf"},
			{"image/png", "hello", "text text/plain"},
			{"text/csv", "a,b", "text text/csv"},
			{"application/json", "{}", "text application/json"},
			{"", "hello", "text text/plain"},
			{"", unknown, "file application/octet-stream"},
			{"application/x-unheard-of", unknown, "file application/x-unheard-of"},
			{"application/vnd.ms-excel", "PK\x03\x04", "file application/vnd.ms-excel"},
			{"text/csv", unknown, "refused"},
			{"png", pngFile, "refused"},
			{"image/p<g", pngFile, "refused"},
			{"image/png", "", "refused"},
		} {
			got := repeated(t, request, filePart{"file", c.declared, c.content})
			if name == "REST" { // the client names the kind
				_, mime, _ := strings.Cut(c.want, " ")
				if c.want = "file " + mime; mime == "" || c.content == unknown && c.declared == "text/csv" {
					continue
				}
			}
			if got != c.want {
				t.Errorf("%s: %q declared as %q: got %s, want %s", name, c.content, c.declared, got, c.want)
			}
		}
	}
}

// TestMedia_Kinds attaches files of another kind than the client names.
func TestMedia_Kinds(t *testing.T) {
	for name, request := range mediaProtocols() {
		if name == "AI SDK" || name == "A2A" { // no kinds
			continue
		}
		for _, c := range []struct{ declared, content, want string }{
			{"image/jpeg", pngFile, "image image/png"},
			{"", pngFile, "image image/png"},
			{"image/x-unheard-of", unknown, "image image/x-unheard-of"},
			{"application/pdf", pngFile, "refused"},
			{"image/png", pdfFile, "refused"},
			{"image/png", "hello", "refused"},
			{"", pdfFile, "refused"},
		} {
			if got := repeated(t, request, filePart{"image", c.declared, c.content}); got != c.want {
				t.Errorf("%s: %q declared as %q: got %s, want %s", name, c.content, c.declared, got, c.want)
			}
		}
	}
}

// TestMedia_Inputs passes files to an input of type image.
func TestMedia_Inputs(t *testing.T) {
	s := serve(t)
	for name, request := range map[string]func(filePart) (path, body string){
		"REST": func(p filePart) (string, string) {
			return "/flows/typed", `{"name":"Ann","count":3,"photo":"` + p.dataURL() + `"}`
		},
		"MCP": func(p filePart) (string, string) {
			return "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"typed","arguments":{"name":"Ann","count":3,"photo":"` + p.dataURL() + `"},
				"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		},
		"A2A": func(p filePart) (string, string) {
			return "/flows/typed/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"data":{"name":"Ann","count":3}},{"raw":"%s","mediaType":"%s"}]}}}`,
				p.base64(), p.declared)
		},
	} {
		for _, c := range []struct {
			declared, content string
			ok                bool
		}{
			{"image/png", pngFile, true}, {"", pngFile, true}, {"image/x-unheard-of", unknown, true}, {"application/x-unheard-of", pngFile, true},
			{"image/png", pdfFile, false}, {"", pdfFile, false}, {"image/png", "hello", false}, {"application/pdf", pngFile, true},
		} {
			path, body := request(filePart{"image", c.declared, c.content})
			got := s.post(path, body, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "typed").body
			if ok := strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(c.content))); ok != c.ok {
				t.Errorf("%s: %q declared as %q: %s", name, c.content, c.declared, got)
			}
		}
	}
}

// repeated returns the type and the media type of the file in the answer of flow repeat, or "refused".
func repeated(t *testing.T, request func(filePart) (path, body string), p filePart) string {
	t.Helper()
	s := serveApp(t, openApp(t, "testdata/app.qtype.yaml"), server.Options{})
	path, body := request(p)
	got := s.post(path, body)
	var list struct{ Runs []struct{ ID string } }
	s.do("GET", "/runs", "").into(t, &list)
	if len(list.Runs) == 0 {
		return "refused"
	}
	var run struct {
		Outputs []struct {
			Answer struct {
				Blocks []struct {
					Type string
					Mime string `json:"mime_type"`
				}
			}
		}
	}
	s.do("GET", "/runs/"+list.Runs[0].ID, "").into(t, &run)
	if len(run.Outputs) != 1 || len(run.Outputs[0].Answer.Blocks) != 1 {
		t.Fatalf("%+v: %+v", p, got)
	}
	b := run.Outputs[0].Answer.Blocks[0]
	return b.Type + " " + b.Mime
}
