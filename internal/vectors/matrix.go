package vectors

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"
)

// Encoding is how a Matrix holds coordinates.
type Encoding int

// The encodings.
const (
	Float32 Encoding = iota // exact
	Int8                    // a quarter of the size: whole numbers up to 127 and a factor for each vector
	Int4                    // whole numbers up to 7, encoded in an eighth of the size and in memory as Int8
)

// Rows begin at multiples of these numbers of coordinates, which scans process at a time.
const (
	floatStep = 8
	int8Step  = 32
)

// MaxDimensions is the greatest length of a vector: sums of products of Int8 fit in 32 bits.
const MaxDimensions = 1 << 16

// Matrix holds vectors of length 1 in the layout that scans read. It is not safe for
// concurrent use, except by readers.
type Matrix struct {
	encoding   Encoding
	dimensions int
	stride     int // coordinates from one row to the next; those after the vector are 0
	rows       int
	floats     []float32 // of Float32
	codes      []int8    // of Int8 and Int4
	factors    []float32 // of them: what the codes of a row are multiplied by
	unit       []float32 // of the vector that Append adds
}

// NewMatrix returns a matrix without rows.
func NewMatrix(e Encoding, dimensions int) *Matrix {
	step := floatStep
	if e != Float32 {
		step = int8Step
	}
	return &Matrix{encoding: e, dimensions: dimensions, stride: (dimensions + step - 1) / step * step}
}

// Like returns a matrix of the same form without rows.
func (m *Matrix) Like() *Matrix { return NewMatrix(m.encoding, m.dimensions) }

// Rows returns the number of vectors.
func (m *Matrix) Rows() int { return m.rows }

// RowBytes returns the size in memory of a vector.
func (m *Matrix) RowBytes() int {
	if m.encoding == Float32 {
		return 4 * m.stride
	}
	return m.stride + 4
}

// Reserve makes room for vectors.
func (m *Matrix) Reserve(rows int) {
	if m.encoding == Float32 {
		m.floats = slices.Grow(m.floats, rows*m.stride)
		return
	}
	m.codes, m.factors = slices.Grow(m.codes, rows*m.stride), slices.Grow(m.factors, rows)
}

// Append adds a vector, which is normalized.
func (m *Matrix) Append(vector []float32) {
	if m.unit == nil {
		m.unit = make([]float32, m.dimensions)
	}
	unit := m.unit
	clear(unit[copy(unit, vector):])
	Normalize(unit)
	m.rows++
	if m.encoding == Float32 {
		m.floats = append(m.floats, unit...)
		m.floats = append(m.floats, make([]float32, m.stride-m.dimensions)...)
		return
	}
	from := len(m.codes)
	m.codes = append(m.codes, make([]int8, m.stride)...)
	m.factors = append(m.factors, quantize(m.codes[from:from+m.dimensions], unit, m.encoding.greatest()))
}

// greatest returns the greatest code.
func (e Encoding) greatest() float32 {
	if e == Int4 {
		return 7
	}
	return 127
}

// quantize sets the codes of a vector and returns the factor that restores it.
func quantize(codes []int8, vector []float32, greatest float32) float32 {
	var largest float32
	for _, x := range vector {
		largest = max(largest, x, -x)
	}
	if largest == 0 {
		return 0
	}
	toCode := greatest / largest
	for i, x := range vector {
		codes[i] = int8(math.RoundToEven(float64(x * toCode)))
	}
	return largest / greatest
}

// errRow is returned for the bytes of another row.
var errRow = errors.New("a stored vector has another length or encoding")

// AppendEncoded adds a row that Encode returned for a matrix of the same form.
func (m *Matrix) AppendEncoded(row []byte) error {
	if m.encoding == Float32 {
		if len(row) != 4*m.dimensions {
			return errRow
		}
		for ; len(row) > 0; row = row[4:] {
			m.floats = append(m.floats, math.Float32frombits(binary.LittleEndian.Uint32(row)))
		}
		m.floats = append(m.floats, make([]float32, m.stride-m.dimensions)...)
		m.rows++
		return nil
	}
	if m.encoding == Int4 {
		return m.appendPacked(row)
	}
	if len(row) != 4+m.dimensions {
		return errRow
	}
	m.factors = append(m.factors, math.Float32frombits(binary.LittleEndian.Uint32(row)))
	for _, code := range row[4:] {
		m.codes = append(m.codes, int8(code))
	}
	m.codes = append(m.codes, make([]int8, m.stride-m.dimensions)...)
	m.rows++
	return nil
}

// packedBytes is the number of bytes that have the codes of a row of Int4.
func (m *Matrix) packedBytes() int { return m.stride / 2 }

// appendPacked adds a row of Int4. Eight bytes at a time are made sixteen codes.
func (m *Matrix) appendPacked(row []byte) error {
	if len(row) != 4+m.packedBytes() {
		return errRow
	}
	factor := math.Float32frombits(binary.LittleEndian.Uint32(row))
	if !(factor >= 0 && factor <= 1) { // also not a number
		return errRow
	}
	const low, eights, signs = 0x0f0f0f0f0f0f0f0f, 0x0808080808080808, 0x8080808080808080
	m.factors = append(m.factors, factor)
	from := len(m.codes)
	m.codes = slices.Grow(m.codes, m.stride)[:from+m.stride]
	codes := unsafe.Slice((*byte)(unsafe.Pointer(&m.codes[from])), m.stride) //nolint:gosec // bytes of the row; a search reads a million rows
	for row = row[4:]; len(row) >= 8; row, codes = row[8:], codes[16:] {
		packed := binary.LittleEndian.Uint64(row)
		binary.LittleEndian.PutUint64(codes, (packed&low|signs)-eights^signs)
		binary.LittleEndian.PutUint64(codes[8:], (packed>>4&low|signs)-eights^signs)
	}
	m.rows++
	return nil
}

// pack returns the codes of a row of Int4, plus 8, in 4 bits each: the i-th byte of eight has the i-th code of
// sixteen, and the one eight codes after it.
func (m *Matrix) pack(b []byte, codes []int8) []byte {
	for ; len(codes) > 0; codes = codes[16:] {
		for i := range 8 {
			b = append(b, byte(codes[i]+8)|byte(codes[i+8]+8)<<4)
		}
	}
	return b
}

// AppendRow adds a row of a matrix of the same form.
func (m *Matrix) AppendRow(from *Matrix, row int) {
	at := row * m.stride
	if m.encoding == Float32 {
		m.floats = append(m.floats, from.floats[at:at+m.stride]...)
	} else {
		m.codes = append(m.codes, from.codes[at:at+m.stride]...)
		m.factors = append(m.factors, from.factors[row])
	}
	m.rows++
}

// RowSize returns the length of an encoded row.
func (m *Matrix) RowSize() int {
	switch m.encoding {
	case Float32:
		return 4 * m.dimensions
	case Int4:
		return 4 + m.packedBytes()
	}
	return 4 + m.dimensions
}

// Encode returns a row as bytes: of Float32, the coordinates as IEEE 754; of Int8 and Int4, the
// factor and the codes; all little-endian.
func (m *Matrix) Encode(row int) []byte {
	at := row * m.stride
	if m.encoding == Float32 {
		return EncodeFloats(m.floats[at : at+m.dimensions])
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+m.dimensions), math.Float32bits(m.factors[row]))
	if m.encoding == Int4 {
		return m.pack(b, m.codes[at:at+m.stride])
	}
	for _, code := range m.codes[at : at+m.dimensions] {
		b = append(b, byte(code))
	}
	return b
}

// EncodeFloats returns coordinates as IEEE 754, little-endian.
func EncodeFloats(vector []float32) []byte {
	b := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// DecodeFloats is the reverse of EncodeFloats.
func DecodeFloats(b []byte) []float32 {
	vector := make([]float32, len(b)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return vector
}

// AddTo adds a row to a sum.
func (m *Matrix) AddTo(sum []float32, row int) {
	at := row * m.stride
	if m.encoding == Float32 {
		for i, x := range m.floats[at : at+m.dimensions] {
			sum[i] += x
		}
		return
	}
	factor := m.factors[row]
	for i, code := range m.codes[at : at+m.dimensions] {
		sum[i] += factor * float32(code)
	}
}

// Query is a vector to compare with the rows of matrices of one form.
type Query struct {
	floats []float32
	wide   []int16 // codes of Int8
	factor float32
}

// NewQuery prepares a vector, which is normalized, for the form of a matrix.
func (m *Matrix) NewQuery(vector []float32) *Query {
	encoding := m.encoding
	if encoding == Int4 {
		encoding = Int8 // the query has more digits
	}
	one := NewMatrix(encoding, m.dimensions)
	one.Append(vector)
	q := &Query{floats: one.floats}
	if m.encoding != Float32 {
		q.factor = one.factors[0]
		q.wide = make([]int16, m.stride)
		for i, code := range one.codes {
			q.wide[i] = int16(code)
		}
	}
	return q
}

// RowQuery returns a row as a query for matrices of the same form.
func (m *Matrix) RowQuery(row int) *Query {
	unit := make([]float32, m.dimensions)
	m.AddTo(unit, row)
	return m.NewQuery(unit)
}

// scanRows is the number of rows whose dot products are computed at a time.
const scanRows = 256

// Scan calls visit with the cosines of rows: scores[i] is that of row first+i.
func (m *Matrix) Scan(q *Query, visit func(first int, scores []float32)) {
	var sums [scanRows]int32
	var scores [scanRows]float32
	for first := 0; first < m.rows; first += scanRows {
		n := min(scanRows, m.rows-first)
		at := first * m.stride
		if m.encoding == Float32 {
			dotFloats(q.floats, m.floats[at:at+n*m.stride], scores[:n])
		} else {
			dotCodes(q.wide, m.codes[at:at+n*m.stride], sums[:n])
			for i, sum := range sums[:n] {
				scores[i] = float32(sum) * q.factor * m.factors[first+i]
			}
		}
		visit(first, scores[:n])
	}
}

// Dot returns the dot product of two vectors of one length.
func Dot(a, b []float32) float32 {
	whole := len(a) &^ (floatStep - 1)
	var sum [1]float32
	if whole > 0 {
		dotFloats(a[:whole], b[:whole], sum[:])
	}
	for i := whole; i < len(a); i++ {
		sum[0] += a[i] * b[i]
	}
	return sum[0]
}

// Normalize makes the length of a vector 1; a vector of zeros remains.
func Normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length) // 1/length could overflow a float32
	}
}
