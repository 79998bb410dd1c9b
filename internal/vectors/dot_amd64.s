#include "textflag.h"

// func floatProductsAVX2(query, rows, out *float32, length, count int)
// length is a positive multiple of 8, count is positive.
TEXT ·floatProductsAVX2(SB), NOSPLIT, $0-40
	MOVQ query+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ out+16(FP), DX
	MOVQ length+24(FP), R8
	MOVQ count+32(FP), CX

floatRow:
	MOVQ   DI, R9
	MOVQ   R8, R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

floatBy32:
	CMPQ        R10, $32
	JLT         floatBy8
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (R9), Y4, Y0
	VFMADD231PS 32(R9), Y5, Y1
	VFMADD231PS 64(R9), Y6, Y2
	VFMADD231PS 96(R9), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, R9
	SUBQ        $32, R10
	JMP         floatBy32

floatBy8:
	TESTQ       R10, R10
	JZ          floatSum
	VMOVUPS     (SI), Y4
	VFMADD231PS (R9), Y4, Y0
	ADDQ        $32, SI
	ADDQ        $32, R9
	SUBQ        $8, R10
	JMP         floatBy8

floatSum:
	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VHADDPS      X0, X0, X0
	VHADDPS      X0, X0, X0
	VMOVSS       X0, (DX)
	ADDQ         $4, DX
	DECQ         CX
	JNZ          floatRow
	VZEROUPPER
	RET

// func codeProductsAVX2(query *int16, rows *int8, out *int32, length, count int)
// length is a positive multiple of 32, count is positive.
TEXT ·codeProductsAVX2(SB), NOSPLIT, $0-40
	MOVQ query+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ out+16(FP), DX
	MOVQ length+24(FP), R8
	MOVQ count+32(FP), CX

codeRow:
	MOVQ  DI, R9
	MOVQ  R8, R10
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

codeBy32:
	VPMOVSXBW (SI), Y2
	VPMOVSXBW 16(SI), Y3
	VPMADDWD  (R9), Y2, Y2
	VPMADDWD  32(R9), Y3, Y3
	VPADDD    Y2, Y0, Y0
	VPADDD    Y3, Y1, Y1
	ADDQ      $32, SI
	ADDQ      $64, R9
	SUBQ      $32, R10
	JNZ       codeBy32

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (DX)
	ADDQ         $4, DX
	DECQ         CX
	JNZ          codeRow
	VZEROUPPER
	RET
