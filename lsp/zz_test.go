package lsp
import ("testing";"math/rand";"time";"fmt";"runtime")
func TestZZ(t *testing.T) {
	var all []string
	for _, s := range samples(t) { all = append(all, s) }
	r := rand.New(rand.NewSource(time.Now().UnixNano()))
	end := time.Now().Add(12*time.Second)
	n := 0
	for time.Now().Before(end) {
		b := []byte(all[r.Intn(len(all))])
		if len(b) > 2000 { s := r.Intn(len(b)-1500); b = b[s:s+1500] }
		for k := 0; k < 1+r.Intn(6); k++ {
			i := r.Intn(len(b)); 
			switch r.Intn(4) {
			case 0: b[i] = byte(r.Intn(256))
			case 1: b = append(b[:i], b[min(len(b), i+r.Intn(30)):]...)
			case 2: b[i] = "{}[]:-|>\"'#&*!\n \t\r"[r.Intn(18)]
			case 3: j := r.Intn(len(b)); b = append(b[:i:i], append([]byte(string(b[j:min(len(b), j+r.Intn(80))])), b[i:]...)...)
			}
			if len(b) == 0 { b = []byte("a") }
		}
		text := string(b)
		done := make(chan string, 1)
		go func() { x := time.Now(); parseOutline(text); a := time.Since(x); x = time.Now(); tidy(text); done <- fmt.Sprint(a, time.Since(x)) }()
		select { case <-done: n++
		case <-time.After(3*time.Second): 
			buf := make([]byte, 1<<16); buf = buf[:runtime.Stack(buf, true)]
			t.Fatalf("stuck on %q\n%s", text, buf) }
	}
	fmt.Println(n)
}
