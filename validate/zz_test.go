package validate_test
import ("testing";"context";"fmt";"os";"path/filepath"
"github.com/qtype-dev/qtype/loader"
"github.com/qtype-dev/qtype/validate")
func TestDump(t *testing.T){
 filepath.Walk("/work/shared/reference/fixtures", func(p string, i os.FileInfo, e error) error {
  if i.IsDir()|| filepath.Ext(p)!=".yaml" {return nil}
  l,f:=loader.Load(context.Background(),p,alone())
  if f.Errors()>0 {return nil}
  g:=validate.Check(l.Document)
  for _,d:=range g { if d.Severity=="warning" {fmt.Println(d.Error())}}
  return nil})
}
