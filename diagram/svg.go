package diagram

func svg(g *graph) string  { return g.title }
func page(g *graph) string { return g.title }
