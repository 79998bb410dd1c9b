package validate_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/validate"
)

// signatureCodes is the range of codes for demands on a step's variables.
const firstSignatureCode, lastSignatureCode = 320, 499

// firstLintCode is the first code that testdata/codes.txt does not record.
const firstLintCode = "QT900"

// TestSignatureCodes guards the codes of the demands that steps declare in their `in`
// and `out` tags, and those of the other rules. testdata/codes.txt records every code that was ever assigned:
// documents and ignore comments depend on them, so none changes its meaning. A
// demand without a code fails with the next one that is free.
func TestSignatureCodes(t *testing.T) {
	assigned := assignedCodes(t)
	demanded := map[string]bool{}
	for _, s := range spec.StepTypes() {
		signatures, err := spec.Signatures(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, signature := range signatures {
			for _, d := range signature.Demands {
				checkCode(t, assigned, d.Code, demandName(s, signature, d))
				demanded[d.Code] = true
			}
		}
	}
	for _, r := range validate.Rules() {
		if r.Code >= fmt.Sprintf("QT%d", firstSignatureCode) && r.Code < firstLintCode && !demanded[r.Code] {
			checkCode(t, assigned, r.Code, "other rule")
		}
	}
}

// demandName identifies a demand in testdata/codes.txt.
func demandName(s spec.Step, signature spec.Signature, d spec.Demand) string {
	name := spec.TypeName(s) + " " + d.Side() + "s"
	if signature.Index != "" {
		name += " of a " + signature.Index
	}
	switch {
	case d.IsCount():
		return name + ": count"
	case d.One:
		return name + ": one " + d.String()
	}
	return name + ": type"
}

func checkCode(t *testing.T, assigned map[string]string, code, name string) {
	t.Helper()
	switch owner := assigned[code]; {
	case code == "":
		t.Errorf("%s: the demand has no code: write %s before it, and add the line %q to testdata/codes.txt", name, nextCode(assigned), nextCode(assigned)+" "+name)
	case owner == "":
		t.Errorf("%s: %s is not in testdata/codes.txt: add the line %q", name, code, code+" "+name)
	case owner != name:
		t.Errorf("%s: %s belongs to %q: use %s", name, code, owner, nextCode(assigned))
	}
}

// nextCode is the first code of the range that was never assigned.
func nextCode(assigned map[string]string) string {
	for n := firstSignatureCode; n <= lastSignatureCode; n++ {
		if code := fmt.Sprintf("QT%d", n); assigned[code] == "" {
			return code
		}
	}
	return "a new range"
}

// assignedCodes reads testdata/codes.txt: what each code belongs to.
func assignedCodes(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	assigned := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		code, name, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(code, "#") {
			continue
		}
		if assigned[code] != "" {
			t.Errorf("testdata/codes.txt: %s is assigned twice", code)
		}
		assigned[code] = name
	}
	return assigned
}
