package mediatype

import "strings"

// maxName is the longest path or address, in bytes.
const maxName = 4096

// MayBeFileName reports whether a text may be a path or an address: one line that is not
// longer than such names are.
func MayBeFileName(text string) bool {
	return len(text) <= maxName && strings.TrimSpace(text) != "" && !strings.ContainsAny(text, "\n\r\x00")
}

// IsFileName reports whether the text of a file is taken for the name of the file, and not
// for its content: an address, or one word that ends with an extension.
func IsFileName(text string) bool {
	if !MayBeFileName(text) || strings.ContainsAny(text, " \t\"'<>{}") {
		return false
	}
	if strings.Contains(text, "://") {
		return true
	}
	end := text[strings.LastIndexByte(text, '/')+1:]
	dot := strings.LastIndexByte(end, '.')
	const longest = 5
	extension := end[dot+1:]
	return dot > 0 && extension != "" && len(extension) <= longest && isExtension(extension)
}

// isExtension reports whether a text has only ASCII letters and digits, and a letter first.
func isExtension(text string) bool {
	for i, c := range strings.ToLower(text) {
		if (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
