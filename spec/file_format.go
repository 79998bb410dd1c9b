package spec

import (
	"path/filepath"
	"slices"
	"strings"
)

// FileFormat returns the format of a file of rows by its extension, after the extension of
// a compression (.gz, .zst), such as csv; empty if it has none.
func FileFormat(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	if slices.Contains([]string{".gz", ".zst", ".zstd"}, ext) {
		ext = strings.ToLower(filepath.Ext(path[:len(path)-len(ext)]))
	}
	switch ext {
	case ".xlsx", ".xlsm":
		return "xlsx"
	case ".csv":
		return "csv"
	case ".tsv", ".tab":
		return "tsv"
	case ".json":
		return "json"
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".parquet", ".pq":
		return "parquet"
	}
	return ""
}

// UnwritableFile returns why a FileWriter cannot write a file of that name; empty if it can.
func UnwritableFile(path string) string {
	switch FileFormat(path) {
	case "":
		return "unknown file format: use .csv, .tsv, .json, .jsonl or .parquet, optionally followed by .gz or .zst"
	case "xlsx":
		return "Excel workbooks cannot be written: use .csv or .parquet"
	}
	return ""
}
