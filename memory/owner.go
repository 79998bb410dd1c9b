package memory

import "strings"

// Scope is what a conversation, a variable or a block of the context belongs to.
type Scope string

// The scopes, from the narrowest.
const (
	SessionScope Scope = "session" // one session; the default
	UserScope    Scope = "user"    // all sessions of a user; for a session without a user, the session itself
	AppScope     Scope = "app"     // all sessions of the memory
)

// appSession is the session of what belongs to all sessions of a memory. No user has it,
// because the name of a user is not empty.
const appSession = "/"

// Session returns the session that holds what belongs to the scope of a session: the
// session itself, the one with the name of the user and an empty id, or "/".
func (s Scope) Session(session string) string {
	switch s {
	case UserScope:
		if user, _ := SplitSession(session); user != "" {
			return UserSession(user, "")
		}
	case AppScope:
		return appSession
	}
	return session
}

// Covers reports whether s is at least as wide as another scope.
func (s Scope) Covers(other Scope) bool { return s.width() >= other.width() }

func (s Scope) width() int {
	switch s {
	case UserScope:
		return 1
	case AppScope:
		return 2 //nolint:mnd // the widest
	}
	return 0
}

// IsShared reports whether a stored session holds what several sessions share: it is
// that of a user or of the application.
func IsShared(session string) bool {
	user, id := SplitSession(session)
	return session == appSession || user != "" && id == ""
}

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
