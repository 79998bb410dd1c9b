package parts

import "fmt"

// Guard calls a function of another module and returns a panic of it as an error. What is its name in the error.
func Guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v", what, p)
		}
	}()
	return f()
}
