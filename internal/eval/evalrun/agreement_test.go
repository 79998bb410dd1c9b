package evalrun

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pairsOf returns the pairs that a table counts.
func pairsOf(table [][]int) (pairs [][2]int) {
	for i, row := range table {
		for j, count := range row {
			for range count {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

// TestKappa_Published compares with the tables of Cohen (1960), 0.40 for 20, 5, 10, 15 of 50, and of Fleiss, Levin and
// Paik (2003, table 18.1), 0.68 with a standard error of 0.087 of 100 diagnoses.
func TestKappa_Published(t *testing.T) {
	if k := kappa(pairsOf([][]int{{20, 5}, {10, 15}}), 2); math.Abs(k.Value-0.4) > 1e-9 || k.Count != 50 {
		t.Errorf("%+v", k)
	}
	diagnoses := [][]int{{75, 1, 4}, {5, 4, 1}, {0, 0, 10}}
	k := kappa(pairsOf(diagnoses), 3)
	if math.Abs(k.Value-0.676) > 0.0005 {
		t.Errorf("%+v", k)
	}
	if half := (k.High - k.Low) / 2 / 1.96; math.Abs(half-0.088) > 0.003 {
		t.Errorf("half of the interval is %.4f standard errors", half)
	}
	if k := kappa(pairsOf([][]int{{20, 0}, {0, 20}}), 2); k.Value != 1 || k.Low > 0.85 || k.Low < 0.8 || k.High < 1-1e-9 || k.High > 1 {
		t.Errorf("full agreement of 40: %+v", k)
	}
	if k := kappa(pairsOf([][]int{{20, 0}, {0, 0}}), 2); k.Count != 0 {
		t.Errorf("one label: %+v", k)
	}
	if k := kappa(pairsOf([][]int{{2, 0}, {1, 0}}), 2); k.Value != 0 || k.Low != -1 {
		t.Errorf("three pairs, of which one differs: %+v", k)
	}
}

// TestKappa_Coverage simulates judges of known agreement: 94 to 96 % of the intervals have the true kappa, and 92 % of few pairs with a kappa near 1.
func TestKappa_Coverage(t *testing.T) {
	const simulations = 2000
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n           int
		rate, wrong float64 // of the label 1, and of verdicts that differ
	}{{50, 0.5, 0.1}, {100, 0.5, 0.2}, {100, 0.3, 0.1}, {200, 0.2, 0.1}, {50, 0.5, 0.02}} {
		equal := 1 - c.wrong
		judged := c.rate*(1-c.wrong) + (1-c.rate)*c.wrong
		chance := c.rate*judged + (1-c.rate)*(1-judged)
		truth, covered := (equal-chance)/(1-chance), 0
		for range simulations {
			pairs := make([][2]int, c.n)
			for i := range pairs {
				if random.Float64() < c.rate {
					pairs[i] = [2]int{1, 1}
				}
				if random.Float64() < c.wrong {
					pairs[i][1] = 1 - pairs[i][1]
				}
			}
			if k := kappa(pairs, 2); k.Low <= truth && truth <= k.High {
				covered++
			}
		}
		share := float64(covered) / simulations
		t.Logf("%+v: kappa %.2f, %.3f covered", c, truth, share)
		if share < 0.91 || share > 0.98 {
			t.Errorf("%+v: %.3f of the intervals have the true kappa %.2f", c, share, truth)
		}
	}
}

// TestLengthBias finds a judge that likes long outputs, and no other one in more than about 5 % of sets.
func TestLengthBias(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	found := func(bias float64) (count int) {
		for range 400 {
			lengths, excess := make([]int, 60), make([]float64, 60)
			for i := range lengths {
				lengths[i] = random.IntN(1000)
				if random.Float64() < 0.2+bias*float64(lengths[i])/1000 {
					excess[i] = 1
				}
			}
			if b, ok := lengthBias(lengths, excess); ok && b.P <= alpha {
				count++
			}
		}
		return count
	}
	if n := found(0); n > 30 {
		t.Errorf("%d of 400 judges without a bias have one", n)
	}
	if n := found(0.7); n < 240 {
		t.Errorf("only %d of 400 judges with a bias have one", n)
	}
	if _, ok := lengthBias([]int{5, 5, 5, 5}, []float64{0, 1, 0, 1}); ok {
		t.Error("outputs of one length have a bias")
	}
}
