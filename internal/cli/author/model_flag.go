package author

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// dayVariable is the variable of reproducible builds that stands for the time of day.
const dayVariable = "SOURCE_DATE_EPOCH"

// today returns the day for which documents are checked: SOURCE_DATE_EPOCH, in seconds since
// 1970, or else the present one.
func today() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv(dayVariable), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Now().UTC()
}

// dayOf returns the day of the flag --on, by default today.
func dayOf(text string) (time.Time, error) {
	if text == "" {
		return today(), nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, terminal.Usagef("--on %q is not a day such as 2027-01-31", text)
	}
	return day, nil
}

// modelFlag is the repeated flag --model ID=NAME.
type modelFlag map[string]string

// String returns nothing: the flag has no default.
func (f *modelFlag) String() string { return "" }

// Set adds a model.
func (f *modelFlag) Set(text string) error {
	id, name, ok := strings.Cut(text, "=")
	if !ok || id == "" || name == "" {
		return fmt.Errorf("%q is not ID=NAME, such as assistant=gpt-6-luna", text)
	}
	if *f == nil {
		*f = modelFlag{}
	}
	(*f)[id] = name
	return nil
}

// Type names the value in the help.
func (f *modelFlag) Type() string { return "ID=NAME" }
