package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"errors"
	"io"
)

// errImage is the error of a stream whose filter is for images only.
var errImage = errors.New("the stream is an image")

// errTooLarge is the error of decompressing more than the limit.
var errTooLarge = errors.New("too large after decompression")

// decode returns the decompressed data of a stream. Damaged data ends where the damage
// begins: what precedes it is often the text of a page.
func (f *file) decode(s *stream) ([]byte, error) {
	data := s.raw
	filters := f.list(s.dict["Filter"])
	parameters := f.list(s.dict["DecodeParms"])
	for i, filter := range filters {
		if i >= 8 {
			return nil, errors.New("too many filters")
		}
		var params dict
		if i < len(parameters) {
			params, _ = f.resolve(parameters[i]).(dict)
		}
		n, _ := f.resolve(filter).(name)
		var err error
		if data, err = f.filter(n, data, params); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// list returns an array, or one value as an array.
func (f *file) list(o object) array {
	switch o := f.resolve(o).(type) {
	case nil:
		return nil
	case array:
		return o
	default:
		return array{o}
	}
}

func (f *file) filter(n name, data []byte, params dict) ([]byte, error) {
	var out []byte
	var err error
	switch n {
	case "FlateDecode", "Fl":
		out, err = f.inflate(data)
	case "LZWDecode", "LZW":
		out, err = f.unpackLZW(data, f.integer(params["EarlyChange"], 1))
	case "ASCII85Decode", "A85":
		out, err = f.readAll(ascii85.NewDecoder(bytes.NewReader(trim85(data))))
	case "ASCIIHexDecode", "AHx":
		hex, _ := (&lexer{data: append([]byte{'<'}, data...)}).hex().(text)
		out = []byte(hex)
	case "RunLengthDecode", "RL":
		out, err = f.unpackRuns(data)
	case "Crypt":
		return data, nil
	default:
		return nil, errImage
	}
	if err != nil {
		return nil, err
	}
	return f.unpredict(out, params)
}

// inflate decompresses zlib data. The header and the checksum are not verified, because
// some producers write wrong ones.
func (f *file) inflate(data []byte) ([]byte, error) {
	data = bytes.TrimLeft(data, "\r\n")
	if len(data) > 2 && data[0]&0x0f == 8 {
		data = data[2:]
	}
	return f.readAll(flate.NewReader(bytes.NewReader(data)))
}

// readAll reads up to the limit of decompressed data. An error of the data ends it.
func (f *file) readAll(in io.Reader) ([]byte, error) {
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(in, f.unpacked+1))
	if f.unpacked -= n; f.unpacked < 0 {
		return nil, errTooLarge
	}
	if err != nil && n == 0 {
		return nil, err
	}
	return out.Bytes(), nil
}

// trim85 removes the marks around ASCII85 data.
func trim85(data []byte) []byte {
	data = bytes.TrimSpace(data)
	data = bytes.TrimPrefix(data, []byte("<~"))
	if end := bytes.IndexByte(data, '~'); end >= 0 {
		data = data[:end]
	}
	return data
}

func (f *file) unpackRuns(data []byte) ([]byte, error) {
	var out []byte
	for i := 0; i < len(data) && data[i] != 128; {
		n := int(data[i])
		i++
		before := len(out)
		switch {
		case n < 128:
			end := min(i+n+1, len(data))
			out = append(out, data[i:end]...)
			i = end
		case i < len(data):
			out = append(out, bytes.Repeat(data[i:i+1], 257-n)...)
			i++
		}
		if f.unpacked -= int64(len(out) - before); f.unpacked < 0 {
			return nil, errTooLarge
		}
	}
	return out, nil
}

// unpackLZW decompresses LZW data of variable code length; package compress/lzw does not
// have the early change of the code length that PDF requires.
func (f *file) unpackLZW(data []byte, early int) ([]byte, error) {
	const clear, end = 256, 257
	type entry struct{ start, length int } // a sequence in out
	var out []byte
	table := make([]entry, 0, 4096)
	bits, width, buffer := 0, 9, uint32(0)
	previous := entry{}
	for _, b := range data {
		buffer, bits = buffer<<8|uint32(b), bits+8
		if bits < width {
			continue
		}
		code := int(buffer >> (bits - width) & (1<<width - 1))
		bits -= width
		at := len(out)
		switch {
		case code == end:
			return out, nil
		case code == clear:
			table, width, previous = table[:0], 9, entry{}
			continue
		case code < 256:
			out = append(out, byte(code))
		case code-258 < len(table):
			e := table[code-258]
			out = append(out, out[e.start:e.start+e.length]...)
		case previous.length > 0 && code-258 == len(table):
			out = append(out, out[previous.start:previous.start+previous.length]...)
			out = append(out, out[previous.start])
		default:
			return out, nil // damaged
		}
		if f.unpacked -= int64(len(out) - at); f.unpacked < 0 {
			return nil, errTooLarge
		}
		if previous.length > 0 && len(table) < 4096-258 {
			table = append(table, entry{previous.start, previous.length + 1})
		}
		previous = entry{at, len(out) - at}
		for size := len(table) + 258 + early; width < 12 && size+1 > 1<<width; {
			width++
		}
	}
	return out, nil
}

// unpredict reverses the prediction of bytes from their neighbors.
func (f *file) unpredict(data []byte, params dict) ([]byte, error) {
	predictor := f.integer(params["Predictor"], 1)
	if predictor < 2 {
		return data, nil
	}
	colors, depth := f.integer(params["Colors"], 1), f.integer(params["BitsPerComponent"], 8)
	columns := f.integer(params["Columns"], 1)
	if colors < 1 || colors > 32 || depth < 1 || depth > 16 || columns < 1 || columns > 1<<20 {
		return nil, errors.New("invalid predictor")
	}
	pixel := max(1, colors*depth/8)
	width := (colors*depth*columns + 7) / 8
	if predictor == 2 {
		for row := 0; row+width <= len(data); row += width {
			for i := pixel; i < width; i++ {
				data[row+i] += data[row+i-pixel]
			}
		}
		return data, nil
	}
	out := make([]byte, 0, len(data))
	above := make([]byte, width)
	for len(data) > 1 {
		row := make([]byte, width)
		copy(row, data[1:])
		unfilter(data[0], row, above, pixel)
		out = append(out, row[:min(width, len(data)-1)]...)
		data = data[min(width+1, len(data)):]
		above = row
	}
	return out, nil
}

// unfilter reverses a PNG filter of a row.
func unfilter(kind byte, row, above []byte, pixel int) {
	for i := range row {
		left, corner := byte(0), byte(0)
		if i >= pixel {
			left, corner = row[i-pixel], above[i-pixel]
		}
		switch kind {
		case 1:
			row[i] += left
		case 2:
			row[i] += above[i]
		case 3:
			row[i] += byte((int(left) + int(above[i])) / 2)
		case 4:
			row[i] += paeth(int(left), int(above[i]), int(corner))
		}
	}
}

func paeth(left, above, corner int) byte {
	p := left + above - corner
	dl, da, dc := abs(p-left), abs(p-above), abs(p-corner)
	switch {
	case dl <= da && dl <= dc:
		return byte(left)
	case da <= dc:
		return byte(above)
	}
	return byte(corner)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
