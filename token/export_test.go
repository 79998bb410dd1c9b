package token

// Load loads an encoding afresh.
func Load(name string) (*Encoding, error) {
	for i := range encodings {
		if l := &encodings[i]; l.name == name {
			return l.load()
		}
	}
	return For(name)
}

// File returns the name of the file that holds the vocabulary of an encoding.
func File(name string) string {
	for i := range encodings {
		if l := &encodings[i]; l.name == name {
			return l.file
		}
	}
	return ""
}
