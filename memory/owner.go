package memory

import "strings"

// UserSession returns the id under which a session of a user is stored: the name of
// the user, a slash, and the id. Sessions of different users differ, no matter which
// ids they choose. Without a user it is the id.
func UserSession(user, id string) string {
	if user == "" {
		return id
	}
	return UserPrefix(user) + id
}

// UserPrefix returns what the stored ids of all sessions of a user begin with.
func UserPrefix(user string) string {
	if user == "" {
		return ""
	}
	return escapeUser.Replace(user) + "/"
}

// SplitSession returns the user to whom a stored session belongs and the id that the
// user gave it. A session without a slash belongs to no user.
func SplitSession(session string) (user, id string) {
	name, id, ok := strings.Cut(session, "/")
	if !ok || name == "" {
		return "", session
	}
	return unescapeUser.Replace(name), id
}

// The replacers keep the slash unambiguous.
var (
	escapeUser   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapeUser = strings.NewReplacer("%25", "%", "%2F", "/")
)
