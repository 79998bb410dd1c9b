package loader

import ("testing";"context";"fmt";"os")
func TestZZ(t *testing.T){
 for _,f:=range os.Args[1:]{ if len(f)>4 && f[len(f)-5:]==".yaml"{
  _,l:=Load(context.Background(), f, Options{})
  for _,d:=range l {fmt.Println(d.Severity, d)}
 }}
}
