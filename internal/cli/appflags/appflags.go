// Package appflags has the flags that commands which run applications share: what a document may
// reach, where conversations are stored, who answers for the caller, and what is logged.
package appflags

import (
	"context"
	"os/user"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// CloseApp closes an application at the end of a command.
func CloseApp(ctx context.Context, app *runtime.App, err *error) {
	if closing := app.Close(context.WithoutCancel(ctx)); *err == nil {
		*err = closing
	}
}

// WithActor returns a context whose changes and calls are those of the user of the system.
func WithActor(ctx context.Context) context.Context { return memory.WithActor(ctx, actor()) }

// actor returns the name of the user of the system.
func actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
