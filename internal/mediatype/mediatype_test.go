package mediatype_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/mediatype"
)

func TestDetect(t *testing.T) {
	for data, want := range map[string]string{
		"\x89PNG\r\n\x1a\n":               "image/png",
		"\xff\xd8\xff\xe0\x00\x10JFIF":    "image/jpeg",
		"GIF89a\x01":                      "image/gif",
		"RIFF\x00\x00\x00\x00WEBPVP8 ":    "image/webp",
		"RIFF\x00\x00\x00\x00WAVEfmt ":    "audio/wav",
		"ID3\x04\x00":                     "audio/mpeg",
		"\xff\xfb\x90\x00":                "audio/mpeg",
		"OggS\x00\x02":                    "audio/ogg",
		"\x00\x00\x00\x20ftypisom\x00":    "video/mp4",
		"\x00\x00\x00\x20ftypM4A \x00":    "audio/mp4",
		"%PDF-1.7":                        "application/pdf",
		"PK\x03\x04":                      "application/zip",
		"Dear shop,\n":                    "text/plain",
		"a WEBP b":                        "text/plain",
		"12345678WEBP":                    "text/plain", // not in a RIFF file
		"<!DOCTYPE html>\n<title>x":       "text/html",
		`<?xml version="1.0"?><svg a="">`: "image/svg+xml",
		"\x00\x01\x02":                    "",
		"":                                "",
		strings.Repeat("ä", 2000):         "text/plain", // the last character of the sample is cut
		"x" + strings.Repeat("€", 2000):   "text/plain",
		"\xff\xfe\xfd":                    "",
	} {
		if got := mediatype.Detect([]byte(data)); got != want {
			t.Errorf("Detect(%.20q) = %q, want %q", data, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	const png, wav, webm = "\x89PNG\r\n\x1a\n", "RIFF\x00\x00\x00\x00WAVEfmt ", "\x1a\x45\xdf\xa3\x01"
	for _, c := range []struct{ kind, data, want string }{
		{"image", png, ""}, {"audio", wav, ""}, {"video", webm, ""}, {"audio", webm, ""},
		{"audio", "\x00\x01\x02", ""}, // samples without a header
		{"image", "\x00\x01\x02", ""}, // a format without a known signature
		{"image", "Dear shop,", `expected an image, found the text "Dear shop,"`},
		{"image", strings.Repeat("word ", 100), `expected an image, found the text "word word word word word word word word …"`},
		{"image", "%PDF-1.4", "expected an image, found a PDF document"},
		{"image", "<html><p>", "expected an image, found an HTML page"},
		{"image", wav, "expected an image, found a sound (audio/wav)"},
		{"image", "PK\x03\x04", "expected an image, found a file of type application/zip"},
		{"audio", png, "expected a sound, found an image (image/png)"},
		{"image", "", "expected an image, but it is empty"},
		{"file", "", ""}, {"bytes", "x", ""},
	} {
		err, got := mediatype.Check(c.kind, []byte(c.data)), ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("Check(%s, %.20q) = %q, want %q", c.kind, c.data, got, c.want)
		}
	}
}

func TestIsFileName(t *testing.T) {
	for text, want := range map[string]bool{
		"a.txt": true, "pics/cat.jpeg": true, "/x/y.PDF": true, "https://a.example/b": true, "s3://b/k": true, "file:///a": true, "sound.mp3": true,
		"Dear shop": false, "See a.txt": false, "a.txt\n": false, "1.25": false, "e.g.": false, ".bashrc": false, "x.verylong": false, "": false, "{a.txt": false, "end.Next": true,
	} {
		if mediatype.IsFileName(text) != want {
			t.Errorf("%q is a name: %v", text, !want)
		}
	}
}
