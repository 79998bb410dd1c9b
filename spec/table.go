package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Table describes how a file of rows is read where its name and content do not tell. Each format has some of the keys.
type Table struct {
	Positioned
	// Encoding is the charset of a text file. Without it, that is UTF-8, or UTF-16 with a byte order mark.
	Encoding string `yaml:"encoding" formats:"csv tsv json jsonl" validate:"omitempty,oneof=utf-8 utf-16le utf-16be windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 windows-874 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 koi8-r koi8-u macintosh ibm866 shift_jis euc-jp iso-2022-jp gbk gb18030 big5 euc-kr"`
	// Delimiter is what separates the cells of a line. Without it, that is what the header has: the delimiter of the extension, a semicolon, a tab, a comma or a pipe.
	Delimiter string `yaml:"delimiter" formats:"csv tsv" validate:"omitempty,oneof=comma semicolon tab pipe colon space"`
	// Quote is the character around cells with delimiters or line ends; with none, quotes are text.
	Quote string `yaml:"quote" formats:"csv tsv" validate:"omitempty,oneof=double single none"`
	// Decimal is the sign before the fraction of numbers, in cells that int and float variables read. With comma, points and spaces may group digits.
	Decimal string `yaml:"decimal" formats:"csv tsv xlsx" validate:"omitempty,oneof=point comma"`
	// Comment is how lines begin that are not rows, such as #.
	Comment string `yaml:"comment" formats:"csv tsv"`
	// Header is the line of the column names, counted from 1; lines before it are skipped. Without it, that is the first line that is not empty.
	Header int `yaml:"header" formats:"csv tsv xlsx" validate:"omitempty,gt=0"`
	// Columns are the names of the columns of a file that has no line with names; with header, they replace that line.
	Columns []string `yaml:"columns" formats:"csv tsv xlsx"`
	// Nulls are the texts of cells that are null, such as NA; a cell in quotes never is.
	Nulls []string `yaml:"nulls" formats:"csv tsv xlsx"`
	// Sheet is the name of the sheet of a workbook. Without it, that is the first one that is not hidden.
	Sheet string `yaml:"sheet" formats:"xlsx"`
	// Rows is the member of the object of a JSON file that has the list of rows.
	Rows string `yaml:"rows" formats:"json"`
}

// tableFields lists the fields of Table that are keys.
func tableFields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Table]()), func(f reflect.StructField) bool { return f.Tag.Get("formats") == "" })
}

// TableKeys lists the keys of Table.
func TableKeys() []string {
	var keys []string
	for _, f := range tableFields() {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	return keys
}

// Unfit returns a key that is set and that a format does not have, and the formats that have it; empty if there
// is none. A format has the name that FileFormat returns.
func (t *Table) Unfit(format string) (key, formats string) {
	if t == nil {
		return "", ""
	}
	for _, f := range tableFields() {
		if has := f.Tag.Get("formats"); !reflect.ValueOf(t).Elem().FieldByIndex(f.Index).IsZero() && !slices.Contains(strings.Fields(has), format) {
			return f.Tag.Get("yaml"), strings.ReplaceAll(has, " ", ", ")
		}
	}
	return "", ""
}

// SetKey sets a key by its text. A list has one more item with each call.
func (t *Table) SetKey(key, text string) error {
	for _, f := range tableFields() {
		if f.Tag.Get("yaml") != key {
			continue
		}
		if _, list, ok := strings.Cut(f.Tag.Get("validate"), "oneof="); ok && !slices.Contains(strings.Fields(list), text) {
			return fmt.Errorf("%s is %q; the values are %s", key, text, strings.ReplaceAll(list, " ", ", "))
		}
		v := reflect.ValueOf(t).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.Int:
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%s is %q; a number from 1 is expected", key, text)
			}
			v.SetInt(int64(n))
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.ValueOf(text)))
		default:
			v.SetString(text)
		}
		return nil
	}
	return fmt.Errorf("%q is not an option of tables; they are %s", key, strings.Join(TableKeys(), ", "))
}

// With returns a table with the keys of other, and of t those that other does not set. Either may be nil.
func (t *Table) With(other *Table) *Table {
	both := Table{}
	if t != nil {
		both = *t
	}
	if other == nil {
		return &both
	}
	for _, f := range tableFields() {
		if v := reflect.ValueOf(other).Elem().FieldByIndex(f.Index); !v.IsZero() {
			reflect.ValueOf(&both).Elem().FieldByIndex(f.Index).Set(v)
		}
	}
	return &both
}
