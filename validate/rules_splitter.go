package validate

import "github.com/qtype-dev/qtype/spec"

// splitterRules returns the rules of DocumentSplitter that do not apply to everything that
// has arguments.
func splitterRules() []rule { return []rule{chunkSize(), splitterModel(), unusedChunkSize()} }

// splitterSample returns a flow with a DocumentSplitter.
func splitterSample(keys string) sample {
	return sample{head: sampleVectors, in: "doc: RAGDocument", out: "chunk: RAGChunk",
		steps: "- {type: DocumentSplitter, id: split, inputs: [doc], outputs: [chunk], " + keys + "}"}
}

func chunkSize() rule {
	return rule{code: "QT510", title: "impossible size of chunks",
		doc:    "chunk_size is at least 1, chunk_overlap at least 0 and less than chunk_size: two consecutive chunks share at most that many tokens, and each has tokens that the previous one does not have. Keys of args replace those of the step.",
		sample: splitterSample("chunk_size: 200, chunk_overlap: ⟦200│20⟧"),
		check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
			selected, ok := selectionOf(s)
			args, problems := s.Arguments()
			sized, isSized := args.(spec.Sized)
			if !ok || !selected.Known || !isSized || len(problems) > 0 || isUndecided(s.Args) {
				return
			}
			if key, message := sized.Size().Check(); message != "" {
				at := placeOf(s, key, "splitter_name", "id")
				if field, ok := s.Position().Field("args").Lookup(key); ok {
					at = field.Span()
				}
				p.report(at, "%s", message)
			}
		})}
}

func splitterModel() rule {
	return rule{code: "QT511", title: "splitter without its embedding model",
		doc:    "SemanticSplitterNodeParser compares sentences with the embedding model that model names. Other splitters use no model.",
		sample: splitterSample("splitter_name: SemanticSplitter⟦│, model: vectors⟧"),
		check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
			row, known := spec.LookupSplitter(s.SplitterName)
			switch {
			case !known || !s.Position().Complete("model"):
			case row.Semantic && spec.IsEmpty(&s.Model):
				p.list.Add(p.reportAt(placeOf(s, "splitter_name", "id"), "the splitter %q needs an embedding model", s.SplitterName).
					WithHint("add model: with the id of an embedding model"))
			case !row.Semantic && !spec.IsEmpty(&s.Model):
				p.list.Add(p.reportAt(fieldKey(s, "model"), "the splitter %q uses no model", s.SplitterName).
					WithHint("remove model, or set splitter_name: SemanticSplitterNodeParser"))
			}
		})}
}

func unusedChunkSize() rule {
	return rule{code: "QT512", warning: true, title: "size of chunks without effect",
		doc:    "Only SentenceSplitter, TokenTextSplitter and recursive fill chunks up to a size. The chunks of the other splitters are parts of the document, such as sections, of any size. CodeSplitter has other arguments for the size.",
		sample: splitterSample("splitter_name: ⟦MarkdownNodeParser│recursive⟧, chunk_size: 500"),
		check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
			row, known := spec.LookupSplitter(s.SplitterName)
			if !known || row.Sized {
				return
			}
			for _, key := range []string{"chunk_size", "chunk_overlap"} {
				if _, written := s.Position().Lookup(key); written {
					p.report(fieldKey(s, key), "%s has no effect: the splitter %q makes chunks of any size", key, s.SplitterName)
				}
			}
		})}
}
