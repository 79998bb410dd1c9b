// Package starter writes new projects.
package starter
