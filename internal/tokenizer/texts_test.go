package tokenizer_test

import "strings"

// texts are compared with tiktoken-go, and are the seeds of the fuzz target.
var texts = []string{
	"", "a", " ", "\n", "'", "é", "\xff",
	"hello world", "Hello, World!", "HELLO wORLD", "helloWorld", "HTTPServer", "iPhone's", "McDonald's",
	// Contractions.
	"it's", "IT'S", "It'S", "they've THEY'VE they'Ve", "we'll We'LL we'lL", "I'm I'M", "he'd", "you're YOU'RE", "can't",
	"'s", " 's", "''s", "'s's", "x's's't", "'sx", "'lx", "'l", "'r", "'v", "'re", "'ree", "it'", "it' s", "1's", "!'s", "か's", "'ſ", "it'ſ", "IT'ſe", "\u212A'\u212A",
	// Blanks and line ends.
	"  ", "   ", "a  b", "a   b", "  a", "a ", "a  ", "\n\n", "\n \n", " \n", " \n ", "\n ", "a\n b", "a \nb", "a  \n  b", "a \n \n b", "\t\tx", " \tx", "\t x",
	"\r\n", "\r\n\r\n", "a\r\nb", "\r\n x", " \r\n x", "a\r\n\r\n  b\r\n", "\n\n\nfunc main() {\n\tfmt.Println(\"hi\")\n}\n", "x = 1  \n\n    y = 2\n",
	"\u00a0x", "\u00a0\u00a0x", " \u00a0x", "\u2003\u2003 x", "\u3000x", "\u0085x", "\u2028\u2029x", "\v\f x", "\u1680 x", "\ufeffx", "\u200bx", "\u180ex", "   \u3000", "\n\u3000x", "\u3000\nx",
	// Punctuation.
	"!!!", " !!!", "  !!!", "!!!\n\n", "!\r\n/", "!//\n/x", "//comment\n", "https://example.com/a/b?c=d&e=f#g", "a/b\n/c", "/\n/", " /", "_snake_case_", "{\"a\": [1, 2.5, -3e10]}", "->=>", "$100.00", "...", "…", "—x", "“x”", "\u007f", "a\u007fb", "\x00", "a\x00b", "\x01\x02", "!\n \n!",
	// Digits.
	"1", "12", "123", "1234", "1234567890", " 1", " 12345", "1a2b3c", "3.14159", "१२३४५", "①②③④", "Ⅷ", "½¼", "1½2", "𝟘𝟙𝟚𝟛", "1 2  3\n4",
	// Letters without case, title case, modifiers.
	"東京タワー", "東京 タワー", "これは日本語の文章です。", "中文字符测试,没有空格", "한국어 텍스트입니다", "ภาษาไทย", "हिन्दी में पाठ", "مرحبا بالعالم", "שלום עולם", "Привет, мир!", "Γειά σου Κόσμε", "ǅungla ǄUNGLA ǆungla", "ʰa aʰ Aʰ ʰA ʰAa かAa", "aªAª", "か日AB", "ABか", "AかB", "かaB日", "A日a日A", "日's",
	// Marks.
	"e\u0301", "E\u0301", "\u0301", "\u0301a", "\u0301A", "\u0301AB", "\u0301\u0301AB", "A\u0301B", "AB\u0301", "AB\u0301C", "AB\u0301c", " \u0301", " \u0301a", "!\u0301", "!!\u0301", "!\u0301a", "!!\u0301a", "1\u0301", "\u03011", "\u0301's", "\u0301 a", "\u0301\n", "a\u0301\u0302b", "\u20dd", "x\u20dd", "\u0301!", "\u0301日", "\u0301ǅ",
	// Emoji and joiners.
	"😀", "😀😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "a😀b", " 😀", "  😀", "☕️x", "1️⃣", "\u200d\u200d",
	// Invalid UTF-8: each byte is U+FFFD.
	"\xff\xfe", "a\xffb", "\xc3", "\xc3(", "\xe2\x82", "\xe2\x82x", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\xf0\x9f\x98", "日\xe6", "\x80\x80\x80", "a \xff", "\xff's", "\ufffd", "\ufffd\ufffd",
	// Special tokens are text.
	"<|endoftext|>", "a<|endoftext|>b", "<|fim_prefix|><|fim_middle|><|fim_suffix|>", "<|endofprompt|>", "<|im_start|>user\n<|im_end|>",
	// Letters newer than most Unicode tables, private and unassigned ones.
	"𓍹𓍺𓍻", "\U00013460", "\ue000\ue001", "\u0378", "\U000e0001", "\U0010ffff", "\uffff",
	// Runs.
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 1000), strings.Repeat("A", 1000), strings.Repeat("ab", 700), strings.Repeat(" ", 1000), strings.Repeat(" ", 300) + "x",
	strings.Repeat("\n", 500), strings.Repeat(" \n", 300), strings.Repeat("\t", 200), strings.Repeat("!", 700), strings.Repeat("=", 300), strings.Repeat("日", 300), strings.Repeat("é", 300), strings.Repeat("0", 700), strings.Repeat("\u0301", 200), strings.Repeat("😀", 200), strings.Repeat("\xff", 200), strings.Repeat("か日", 100) + strings.Repeat("AB", 100),
	strings.Repeat("Pneumonoultramicroscopicsilicovolcanoconiosis", 5), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "0x7fffffffffffffff", "deadbeefcafebabe",
}
