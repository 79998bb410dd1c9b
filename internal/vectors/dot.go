package vectors

// floatProducts sets out[i] to the dot product of the query and the i-th row of rows,
// which have the length of the query, a multiple of floatStep.
func floatProducts(query, rows, out []float32) {
	for i := range out {
		row := rows[i*len(query) : (i+1)*len(query)]
		var a, b, c, d float32
		for j := 0; j+4 <= len(row) && j+4 <= len(query); j += 4 {
			r, q := row[j:j+4:j+4], query[j:j+4:j+4]
			a += r[0] * q[0]
			b += r[1] * q[1]
			c += r[2] * q[2]
			d += r[3] * q[3]
		}
		out[i] = a + b + c + d
	}
}

// codeProducts is floatProducts for codes; the length is a multiple of int8Step.
func codeProducts(query []int16, rows []int8, out []int32) {
	for i := range out {
		row := rows[i*len(query) : (i+1)*len(query)]
		var a, b, c, d int32
		for j := 0; j+4 <= len(row) && j+4 <= len(query); j += 4 {
			r, q := row[j:j+4:j+4], query[j:j+4:j+4]
			a += int32(r[0]) * int32(q[0])
			b += int32(r[1]) * int32(q[1])
			c += int32(r[2]) * int32(q[2])
			d += int32(r[3]) * int32(q[3])
		}
		out[i] = a + b + c + d
	}
}
