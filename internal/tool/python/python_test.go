package python_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/tool/python"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a folder with a module, and the pool that runs its functions.
type fixture struct {
	t      *testing.T
	folder string
	pool   *python.Pool
	mu     sync.Mutex
	lines  []string // output of the functions
	env    map[string]string
}

func newFixture(t *testing.T, module string) *fixture {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatal("there is no python3, which the tests need")
		}
		t.Skip("there is no python3")
	}
	s := &fixture{t: t, folder: t.TempDir(), env: map[string]string{}}
	s.write("shop.py", module)
	s.pool = python.NewPool(python.Options{Log: func(line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, line)
	}})
	t.Cleanup(s.pool.Close)
	return s
}

func (s *fixture) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// tool declares a function of the module; inputs are "name: type".
func (s *fixture) tool(function string, inputs ...string) *spec.PythonFunctionTool {
	s.t.Helper()
	t := &spec.PythonFunctionTool{FunctionName: function, ModulePath: "shop", Timeout: spec.Duration(time.Hour)}
	t.ID, t.Name = function, function
	for _, in := range inputs {
		id, text, _ := strings.Cut(in, ": ")
		typ, err := spec.ParseType(text)
		if err != nil {
			s.t.Fatal(err)
		}
		link(&typ)
		t.Inputs = append(t.Inputs, &spec.Variable{ID: id, Type: typ})
	}
	return t
}

// order returns a custom type with a list of another one.
func order() *spec.CustomType {
	item := &spec.CustomType{ID: "Item", Properties: []spec.Property{{Name: "title", Type: spec.Type{Name: "text"}}, {Name: "price", Type: spec.Type{Name: "float"}}}}
	return &spec.CustomType{ID: "Order", Properties: []spec.Property{{Name: "number", Type: spec.Type{Name: "int"}},
		{Name: "items", Type: spec.Type{Elem: &spec.Type{Name: "Item", Custom: item}}}, {Name: "due", Type: spec.Type{Name: "date", Optional: true}}}}
}

func link(t *spec.Type) {
	if t.Elem != nil {
		link(t.Elem)
	}
	if t.Name == "Order" {
		t.Custom = order()
	}
}

func (s *fixture) made(t *spec.PythonFunctionTool) tool.Tool {
	s.t.Helper()
	made, err := python.New(t, python.Env{Pool: s.pool, Folders: []string{s.folder},
		Getenv: func(name string) string {
			if text, ok := s.env[name]; ok {
				return text
			}
			return os.Getenv(name)
		}})
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// call runs a function and returns the result as JSON, or the error.
func (s *fixture) call(t *spec.PythonFunctionTool, args map[string]any) string {
	s.t.Helper()
	result, err := s.made(t).Call(s.t.Context(), args)
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), s.folder, "FOLDER")
	}
	return string(value.JSON(result))
}

func TestPython_Values(t *testing.T) {
	s := newFixture(t, `
import collections, dataclasses, datetime, decimal, enum, typing, uuid

def kind(x): return type(x).__name__ + " " + repr(x)
def same(x): return x

@dataclasses.dataclass
class Line:
    title: str
    price: decimal.Decimal

class Colour(enum.Enum):
    RED = "red"

class Point(typing.NamedTuple):
    x: int
    y: float

class Model:  # as pydantic's
    def __init__(self, **f): self.f = f
    @classmethod
    def model_validate(cls, d): return cls(**d)
    def model_dump(self): return {"dumped": self.f}

def made(what):
    return {
        "dataclass": Line("Mort", decimal.Decimal("7.50")), "enum": Colour.RED, "named": Point(1, 2.5), "model": Model(a=1),
        "set": {3, 1, 2}, "tuple": (1, "a"), "decimal": decimal.Decimal("12"), "nan": float("nan"), "huge": 2**70,
        "aware": datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        "naive": datetime.datetime(2026, 3, 1, 12), "date": datetime.date(2026, 3, 1), "time": datetime.time(8, 30),
        "bytes": b"\xff\x00", "nothing": None, "ordered": {"z": 1, "a": 2}, "keys": {1: "one"}, "uuid": uuid.UUID(int=7),
        "counted": (i * i for i in range(4)), "range": range(3), "deque": collections.deque([1]), "surrogate": "a\udc80",
    }[what]

async def later(x):
    import asyncio
    await asyncio.sleep(0)
    return x + 1

async def several():
    for i in range(3): yield i

def fields(order):
    first = order.items[0]
    return {"number": order.number, "same": order["number"], "title": first.title, "price": first.price + first["price"],
            "due": order.due.year, "type": type(order).__name__, "keys": list(dict.keys(order)), "dumped": order.model_dump()["items"][0]}

def annotated(line: Line, colour: Colour, amount: decimal.Decimal, point: typing.Optional[Point] = None, m: Model = None, tags: typing.Set[str] = ()):
    return [type(v).__name__ for v in (line, line.price, colour, amount, point, m, tags)]

def spoken(message):
    return {"role": message.role, "text": message.blocks[0].content, "image": message.blocks[1].content[:2] == b"\x89P", "all": message}
`)
	for _, c := range []struct {
		decl string
		in   any
		want string
	}{
		{"text", "Grüße 🙂", `"str 'Grüße 🙂'"`},
		{"int", int64(7), `"int 7"`},
		{"float", int64(3), `"float 3.0"`},
		{"boolean", true, `"bool True"`},
		{"bytes", []byte{255, 0}, `"bytes b'\\xff\\x00'"`},
		{"file", "abc", `"bytes b'abc'"`},
		{"date", "2026-03-01", `"date datetime.date(2026, 3, 1)"`},
		{"time", "08:30", `"time datetime.time(8, 30)"`},
		{"datetime", "2026-03-01T12:00:00Z", `"datetime datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.timezone.utc)"`},
		{"datetime", "2026-03-01T12:00:00", `"datetime datetime.datetime(2026, 3, 1, 12, 0)"`},
		{"list[int]", []any{int64(1), int64(2)}, `"list [1, 2]"`},
		{"text?", nil, `error: tool kind: kind(x): missing a required argument: 'x' (FOLDER/shop.py:4)`},
	} {
		if got := s.call(s.tool("kind", "x: "+c.decl), map[string]any{"x": c.in}); got != c.want {
			t.Errorf("%s %v:\n got %s\nwant %s", c.decl, c.in, got, c.want)
		}
	}
	for what, want := range map[string]string{
		"dataclass": `{"title":"Mort","price":7.5}`, "enum": `"red"`, "named": `{"x":1,"y":2.5}`, "model": `{"dumped":{"a":1}}`,
		"set": `[1,2,3]`, "tuple": `[1,"a"]`, "decimal": `12`, "nan": `"NaN"`, "huge": `1180591620717411303424`,
		"aware": `"2026-03-01T12:00:00+02:00"`, "naive": `"2026-03-01T12:00:00"`, "date": `"2026-03-01"`, "time": `"08:30:00"`,
		"bytes": `{"base64":"/wA="}`, "nothing": `null`, "ordered": `{"z":1,"a":2}`, "keys": `{"1":"one"}`,
		"uuid": `"00000000-0000-0000-0000-000000000007"`, "counted": `[0,1,4,9]`, "range": `[0,1,2]`, "deque": `[1]`, "surrogate": "\"a\uFFFD\"",
	} {
		if got := s.call(s.tool("made", "what: text"), map[string]any{"what": what}); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	if got := s.call(s.tool("later", "x: int"), map[string]any{"x": 1}); got != "2" {
		t.Errorf("coroutine: %s", got)
	}
	if got := s.call(s.tool("several"), nil); got != "[0,1,2]" {
		t.Errorf("asynchronous generator: %s", got)
	}
	given := map[string]any{"order": map[string]any{"number": 8812, "items": []any{map[string]any{"title": "Mort", "price": 7.25}}, "due": "2027-01-02"}}
	want := `{"number":8812,"same":8812,"title":"Mort","price":14.5,"due":2027,"type":"Order","keys":["number","items","due"],"dumped":{"title":"Mort","price":7.25}}`
	if got := s.call(s.tool("fields", "order: Order"), given); got != want {
		t.Errorf("record:\n got %s\nwant %s", got, want)
	}
	decl := &spec.PythonFunctionTool{FunctionName: "annotated", ModulePath: "shop"}
	decl.ID = "annotated"
	free := map[string]any{}
	for name, v := range map[string]any{"line": map[string]any{"title": "Mort", "price": 7.5}, "colour": "red", "amount": 2.5,
		"point": map[string]any{"x": 1, "y": 2.0}, "m": map[string]any{"a": 1}, "tags": []any{"a", "a"}} {
		decl.Inputs = append(decl.Inputs, &spec.Variable{ID: name, Type: spec.Type{Name: spec.Any}})
		free[name] = v
	}
	if got := s.call(decl, free); got != `["Line","Decimal","Colour","Decimal","Point","Model","set"]` {
		t.Errorf("annotated: %s", got)
	}
	message := map[string]any{"role": "user", "blocks": []any{map[string]any{"type": "text", "content": "Look"},
		map[string]any{"type": "image", "content": map[string]any{"base64": "iVBORw0KGgo="}}}}
	if got := s.call(s.tool("spoken", "message: ChatMessage"), map[string]any{"message": message}); !strings.HasPrefix(got, `{"role":"user","text":"Look","image":true,`) ||
		!strings.Contains(got, `"content":{"base64":"iVBORw0KGgo="}`) {
		t.Errorf("message: %s", got)
	}
}

func TestPython_Errors(t *testing.T) {
	s := newFixture(t, `
import json, os, sys, signal, time, dataclasses

PRICE = 3

def total(price, amount=1):
    if price < 0:
        raise ValueError("a price of %s\nmakes no sense" % price)
    return price * amount

def deep(): return deep()
def quit(): sys.exit(3)
def vanish(): os._exit(7)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def crash():
    import ctypes
    ctypes.string_at(0)
def forever():
    while True: pass
def greedy(): return len(bytearray(2 << 30))
def huge(): return "x" * (40 << 20)
def strange(): return {"a": [object()]}
def loop():
    l = []
    l.append(l)
    return l
def badkey(): return {(1, 2): 3}
def nested(): return json.loads("{")
def bare(): raise KeyError("sku")
def own():
    class Quiet(Exception):
        def __str__(self): raise RuntimeError("no")
    raise Quiet()
def span(): return time.localtime() and dataclasses
def works(): return "still here"
`)
	s.write("broken.py", "def f(:\n  pass\n")
	s.write("needy.py", "\nimport panda_bear\n")
	module := func(m, f string) *spec.PythonFunctionTool {
		x := s.tool(f)
		x.ModulePath = m
		return x
	}
	slow := s.tool("forever")
	slow.Timeout = spec.Duration(300 * time.Millisecond)
	for _, c := range []struct {
		tool *spec.PythonFunctionTool
		args map[string]any
		want string
	}{
		{s.tool("total", "price: float"), map[string]any{"price": -1.5}, `tool total: ValueError: a price of -1.5 makes no sense (FOLDER/shop.py:8)`},
		{s.tool("total", "price: float", "count: int"), map[string]any{"price": 1, "count": 2}, `tool total: total(price, amount=1): got an unexpected keyword argument 'count' (FOLDER/shop.py:6)`},
		{s.tool("total", "price: float"), map[string]any{"price": "much"}, `tool total: argument price: `},
		{s.tool("total", "price: float"), map[string]any{}, `tool total: argument price: is missing`},
		{s.tool("totl"), nil, `tool totl: module shop has no function totl; did you mean "total"?`},
		{s.tool("PRICE"), nil, `tool PRICE: PRICE of module shop is a int, not a function`},
		{module("shap", "total"), nil, `tool total: there is no module shap next to the document or in PYTHONPATH; did you mean "shop"?`},
		{module("broken", "f"), nil, `tool f: SyntaxError: invalid syntax (broken.py, line 1) (FOLDER/broken.py:1)`},
		{module("needy", "f"), nil, `tool f: module needy imports panda_bear, which `},
		{s.tool("deep"), nil, `tool deep: RecursionError: maximum recursion depth exceeded`},
		{s.tool("quit"), nil, `tool quit: SystemExit: the function called sys.exit(3) (FOLDER/shop.py:12)`},
		{s.tool("vanish"), nil, `tool vanish: shop.vanish did not return: the process ended (exit status 7)`},
		{s.tool("killed"), nil, `tool killed: shop.killed did not return: the process ended (signal: killed)`},
		{s.tool("crash"), nil, `tool crash: shop.crash did not return: the process ended (signal: segmentation fault`},
		{slow, nil, `tool forever: shop.forever: timed out after 300ms`},
		{s.tool("greedy"), nil, `tool greedy: shop.greedy needs more than the 2048 MiB of memory_mb (FOLDER/shop.py:20)`},
		{s.tool("huge"), nil, `tool huge: huge returned more than 32 MiB`},
		{s.tool("strange"), nil, `tool strange: strange returned what cannot be taken: the result.a[0] is a object, which is none of the language's types`},
		{s.tool("loop"), nil, `tool loop: loop returned what cannot be taken: the result[0][0]`},
		{s.tool("badkey"), nil, `tool badkey: badkey returned what cannot be taken: a name in the result is a tuple; names are text`},
		{s.tool("nested"), nil, `tool nested: JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) (FOLDER/shop.py:28)`},
		{s.tool("bare"), nil, `tool bare: KeyError: 'sku' (FOLDER/shop.py:29)`},
		{s.tool("own"), nil, `tool own: Quiet (FOLDER/shop.py:33)`},
	} {
		got := s.call(c.tool, c.args)
		if !strings.HasPrefix(got, "error: "+c.want) || strings.ContainsAny(got, "\n") || len(got) > 400 {
			t.Errorf("\n got %s\nwant error: %s", got, c.want)
		}
		if again := s.call(s.tool("works"), nil); again != `"still here"` {
			t.Fatalf("after %s the next call: %s", c.want, again)
		}
	}
}

func TestPython_Output(t *testing.T) {
	s := newFixture(t, `
import os, sys, subprocess
def noisy(n):
    print('{"result": 1}')
    os.write(1, b"\x00\x00\x00\x01x\n")
    sys.__stdout__.write("under\n"); sys.stderr.write("err\n")
    subprocess.run(["echo", "from a child"])
    for i in range(n): print("line", i)
    try: input()
    except EOFError: return "nothing to read"
`)
	if got := s.call(s.tool("noisy", "n: int"), map[string]any{"n": 3}); got != `"nothing to read"` {
		t.Errorf("got %s", got)
	}
	if got := s.call(s.tool("noisy", "n: int"), map[string]any{"n": 5000}); got != `"nothing to read"` {
		t.Errorf("got %s", got)
	}
	s.pool.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.lines, "\n")
	for _, want := range []string{`tool noisy: {"result": 1}`, "tool noisy: under", "tool noisy: err", "tool noisy: from a child", "tool noisy: line 2", "the rest is not shown"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not passed on", want)
		}
	}
	if len(s.lines) != 1000 {
		t.Errorf("%d lines were passed on", len(s.lines))
	}
}

func TestPool_ReusesProcesses(t *testing.T) {
	s := newFixture(t, `
import os, time
CALLS = []
def meet(folder, me, other):
    open(os.path.join(folder, me), "w").close()
    end = time.time() + 20
    while not os.path.exists(os.path.join(folder, other)):
        if time.time() > end: return -1
        time.sleep(0.005)
    return os.getpid()
def count():
    CALLS.append(1)
    return [os.getpid(), len(CALLS)]
`)
	meet := s.made(s.tool("meet", "folder: text", "me: text", "other: text"))
	var pids [2]any
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			var err error
			if pids[i], err = meet.Call(t.Context(), map[string]any{"folder": s.folder, "me": fmt.Sprint("m", i), "other": fmt.Sprint("m", 1-i)}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if pids[0] == pids[1] || pids[0] == int64(-1) || pids[1] == int64(-1) {
		t.Errorf("the calls did not meet: %v", pids)
	}
	first := s.call(s.tool("count"), nil)
	second := s.call(s.tool("count"), nil)
	if pid, _, _ := strings.Cut(first, ","); !strings.HasPrefix(second, pid+",2") {
		t.Errorf("%s then %s: the process was not used again", first, second)
	}
}

func TestPython_Environment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	s := newFixture(t, "import os\ndef names(): return sorted(os.environ)\ndef given(): return os.environ.get('SHOP_KEY')\n")
	got := s.call(s.tool("names"), nil)
	if strings.Contains(got, "OPENAI") || !strings.Contains(got, `"PATH"`) {
		t.Errorf("the function sees %s", got)
	}
	with := s.tool("given")
	with.Env = map[string]spec.Secret{"SHOP_KEY": spec.NewSecret("k-17")}
	if got := s.call(with, nil); got != `"k-17"` {
		t.Errorf("env: %s", got)
	}
}

func TestPython_Canceled(t *testing.T) {
	s := newFixture(t, `import time, os, subprocess
def sleep(path):
    alive = os.open(path, os.O_WRONLY)
    subprocess.Popen(['sleep', '1000000'], pass_fds=[alive])
    os.write(alive, b'begun')
    time.sleep(1000000)
`)
	tooltest.KilledWith(t, func(ctx context.Context, path string) error {
		_, err := s.made(s.tool("sleep", "path: text")).Call(ctx, map[string]any{"path": path})
		return err
	})
}

func TestPython_ModulesAndInterpreters(t *testing.T) {
	s := newFixture(t, "from helpers.money import cents\ndef f(): return cents(2)\n")
	if err := os.MkdirAll(filepath.Join(s.folder, "helpers"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("helpers/money.py", "def cents(x): return x * 100\n")
	if got := s.call(s.tool("f"), nil); got != "200" {
		t.Errorf("a package next to the document: %s", got)
	}
	far := t.TempDir()
	if err := os.WriteFile(filepath.Join(far, "elsewhere.py"), []byte("def g(): return 'far'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env["PYTHONPATH"] = far
	x := s.tool("g")
	x.ModulePath = "elsewhere"
	if got := s.call(x, nil); got != `"far"` {
		t.Errorf("PYTHONPATH: %s", got)
	}
	for name, want := range map[string]string{"no-such-python": `QTYPE_PYTHON: program "no-such-python" not found in PATH`, "": "no python3 in PATH"} {
		s.env["QTYPE_PYTHON"] = name
		if name == "" {
			s.env["PATH"] = far
		}
		_, err := python.New(s.tool("f"), python.Env{Pool: s.pool, Folders: []string{s.folder}, Getenv: func(n string) string { return s.env[n] }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	s.env["QTYPE_PYTHON"] = "/bin/false"
	if _, err := s.made(s.tool("f")).Call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "/bin/false did not start: exit status 1") {
		t.Errorf("an interpreter that is none: %v", err)
	}
}
