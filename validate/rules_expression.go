package validate

// expressionRules returns the rules of expressions. They are checked while linking.
func expressionRules() []rule {
	return []rule{invalidExpression(), conditionNotBoolean(), unknownVariable(), expressionOfOtherType()}
}

// switchSample returns a document with a Switch.
func switchSample(when string) sample {
	return sample{text: `
id: example
flows:
  - id: refund
    variables: [{id: order, type: int}, {id: reply, type: text}]
    inputs: [order]
    outputs: [reply]
    steps:
      - {type: PromptTemplate, id: write, template: "Order {order} is refunded.", inputs: [order], outputs: [reply]}
  - id: main
    variables: [{id: label, type: text}, {id: order, type: int}, {id: reply, type: text}]
    inputs: [label, order]
    outputs: [reply]
    steps:
      - type: Switch
        id: choose
        inputs: [order]
        cases:
          - {when: '` + when + `', flow: refund}
        outputs: [reply]
`}
}

func invalidExpression() rule {
	return rule{code: "QT423", title: "invalid expression",
		doc:    "Conditions and the values of a Transform are expressions in the language of expr-lang.org: variables, numbers, \"texts\", == and <, and, or, not, in, + and *, functions such as len(…) and lower(…). They are checked against the types of the variables.",
		sample: switchSample(`label ⟦=│==⟧ "refund"`)}
}

func conditionNotBoolean() rule {
	return rule{code: "QT424", title: "condition that is not true or false",
		doc:    "The expressions of when and until are conditions: compare a value, for example with == or >.",
		sample: switchSample(`order⟦│ > 1000⟧`)}
}

func unknownVariable() rule {
	return rule{code: "QT425", title: "unknown variable in an expression",
		doc:    "The names in an expression are variables of its flow, functions, and the keywords and, or, not, in, let, true, false and nil. Texts are quoted.",
		sample: switchSample(`⟦lable│label⟧ == "refund"`)}
}

func expressionOfOtherType() rule {
	return rule{code: "QT426", title: "expression of the wrong type",
		doc: "Each value that a Transform sets has the type of its variable. An int is accepted as a float. Convert with string(…), int(…) and float(…).",
		sample: sample{in: "price: float, pieces: int", out: "total: ⟦text│float⟧",
			steps: "- {type: Transform, id: sum, set: {total: price * pieces}}"}}
}
