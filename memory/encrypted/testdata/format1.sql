-- A session from before heads had seals: SQLite's format 1, records of format 1.
-- Never change it. The key is 32 times the letter a.
PRAGMA user_version = 1; PRAGMA application_id = 1903458672;
CREATE TABLE sessions (
	id      INTEGER PRIMARY KEY,
	memory  TEXT NOT NULL,
	session TEXT NOT NULL,
	version INTEGER NOT NULL,
	state   TEXT NOT NULL, -- JSON
	UNIQUE (memory, session)
);
INSERT INTO sessions VALUES(1,'m','s',944289423702872688,'{"last":9,"turns":5,"first":5,"in_window":4,"tokens":80,"flushes":1,"last_said":"2026-11-22T01:25:49.78722Z"}');
CREATE TABLE entries (
	id         INTEGER PRIMARY KEY, -- session_id << 36 | seq
	session_id INTEGER NOT NULL,
	turn       INTEGER NOT NULL,
	tokens     INTEGER NOT NULL,
	time       INTEGER NOT NULL, -- microseconds since 1970
	failed     INTEGER NOT NULL,
	message_id TEXT NOT NULL,
	message    TEXT NOT NULL -- JSON, in the language's own form
);
INSERT INTO entries VALUES(68719476737,1,1,12,1795310749730218,0,'sfirst','{"id":"sfirst","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/GrhT4eg1ZfaJZqAl45LqFpX+R3Jdo7nAKtMN9J6aepPc44HxMYnI8OE2f7zWkiTTquk7k/ckXmAo7XusF+GNNw+fzXc40z6rwkEwuWPtIZrxkvNlRWA88qVz/tPiwcPTDrL4HZUTY="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476738,1,1,27,1795310749730218,0,'sfirst!','{"id":"sfirst!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/Efeue/q2odfyPiKiWDMzJGC2MqNVNv9zsBXJ/cC8RfPi5V3NVXgaCz/y4aXKO9NPx3no78KnlZ9Ndb6nGwI41p3vD+9qVwdAWT9mYNw+BGBup6UCsyk/BngXxoTvtyix9O1M4qbpjjC52eUW5C/pjXyBx4VRYY"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476739,1,2,13,1795310749770163,0,'ssecond','{"id":"ssecond","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/GWVA1DO64J4FpX1eC+8a4ua0AyHvP0Vaw5jAkdJIblod2oukyKvXfbcgw7/3lQxwbjpgVMQbAj0weiOzAY2diVibcCFNmO/AYydrgL7dzjPFxdl8SpUbcRmUneY2ZqLY1y7dbC8tG67A=="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476740,1,2,28,1795310749770163,0,'ssecond!','{"id":"ssecond!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/FOyOv021k0PxgMumR+AFBpkl5FqUnzklHk3R2M+l/hZ3ykJZgdVf5yG77lAjlDlRYUmo1VG5uZzaF7xDcP789qh/h5LUE7qm1x6iGhTbrqc0yv5Sxiq+34gvFItbbbZcNCS94fAzBYNMx0K7Mn6m33jGTZr7elOgI="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476741,1,3,12,1795310749779670,0,'sthird','{"id":"sthird","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/Fi7Y0Ln8b868YkESdB+vb5obyhP9leQAJdpJUpDqQvTCfU3EU2TEVF51UNgjFewit9Xyq73eEKBZbKo9hxR+QV9e8wz0yoCuENSVwXFBhHhWrjDn4cHCVsEd/0GJfzyNTl2Xx87a4="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476742,1,3,27,1795310749779670,0,'sthird!','{"id":"sthird!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/F/9s7m65HvaW2mH+fniNOI3l1Yi52ujEgkcskleHS+gwJFuRe+uB4YK0vLVuktA4liCxois/UrFzwZfxCheI1eSVTNJK1cTCKqKBJqZWga5ENI0dgNxux/yQkPG0FXBp7rt8f7We411Q9ydanMRHRfUFvCTTeD"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476743,1,4,20,1795310749781039,1,'c5952cfa3045ca83ef1b6b84c3efc3d0','{"id":"c5952cfa3045ca83ef1b6b84c3efc3d0","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/F7O4jj1tYUQm/V63ZV4V14/M03zF0Q4kLpYwSyJ0z2adqhOpGgbMcmZiSxXRWU1IiTAGtoZmJBOnB4qw5RM5IQb5BIDXHB0uewolxF5s7466ssOQjOI2LqzJNEqXKgYu9+DuqACm4q1Lk8xWCX3QJ5RpWSkF+oNzPJUZ0q20lljlO5CHQ7sFwJ"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476744,1,5,13,1795310749787220,0,'sfourth','{"id":"sfourth","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/HBmVr4fdaZEGugt/cKP50EYWCCds00EgpyZINgVm38+Vk5+Fk58MtC6nmjccBNf+CzljdMH0ssLtqS/10PmxdyvUQ0inNwaFPBS+5vSztJw+0KMYJZU5RnaI9J4ALLSsTDHGmx40kxPA=="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476745,1,5,28,1795310749787220,0,'sfourth!','{"id":"sfourth!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAU/AS/ECzxKYDjG5cR+72lWQJHJwttUmzqdQ3iEJoK1vi/Zaj1sb2LBGivAqstokQ1rN5Of7ZstUcTQf7sPoujTg1Xhe6p4qKlNeUjqduCudNEL5dg6MAShtNZ1dRThWMUD1pAn3Ei2qa+DSVJvh7/Z3VNdz9UHe6VGtFmY="},"mime_type":"application/vnd.qtype.sealed"}]}');
CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	session_id INTEGER NOT NULL,
	event      TEXT NOT NULL -- JSON
);
INSERT INTO events VALUES(1,1,'{"kind":"sent","turn":1,"from":1,"to":1,"messages":1,"tokens":12,"reason":"","call":{"system":23,"seen":0,"calls":1,"room":365,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":0,"units":0}]},"time":"2026-11-22T01:25:49.730218Z"}');
INSERT INTO events VALUES(2,1,'{"kind":"variables","turn":1,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAU/AS/F25KJvbSTm88DOOfFMgQIBHCW8qEkUWigzzl9PkPZ8mP4DGdr1bA==","time":"2026-11-22T01:25:49.730218Z"}');
INSERT INTO events VALUES(3,1,'{"kind":"sent","turn":2,"from":1,"to":3,"messages":3,"tokens":52,"reason":"","call":{"system":23,"seen":2,"calls":1,"room":325,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":68,"units":1}]},"time":"2026-11-22T01:25:49.770163Z"}');
INSERT INTO events VALUES(4,1,'{"kind":"variables","turn":2,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAU/AS/H8z+pHL2WC39NwL3ryS4qbgCGYGRCc93Fi/GvmusZr4WG6fRAXGQ==","time":"2026-11-22T01:25:49.770163Z"}');
INSERT INTO events VALUES(5,1,'{"kind":"sent","turn":3,"from":1,"to":5,"messages":5,"tokens":92,"reason":"","call":{"system":23,"seen":4,"calls":1,"room":285,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":69,"units":1}]},"time":"2026-11-22T01:25:49.77967Z"}');
INSERT INTO events VALUES(6,1,'{"kind":"flush","turn":3,"from":1,"to":4,"messages":4,"tokens":80,"rule":"flush","before":119,"limit":100,"unit":"tokens","reason":"sealed:AHFzAU/AS/GMC0cS0KnDA9ODUR5ySFROHJ3kAxf8Rg0+rfGAP3uXzqeMb5NixF9zCVpvy6SWSVio3BOjzYcRTHQEOlKoLLgfueysMBuLTNH0Uj37ZOBn6pn+PiQdCj9AF1IvZTu3Iq82iasom6qAJ0BZkmwqCnotk8A1/miHEmvG1zOQ/j5k01YQm1afC46nSH1IWT/ICBXpZYPm6QDrvO/j3LJzV4xZz9U52cmV2hyl","time":"2026-11-22T01:25:49.77967Z"}');
INSERT INTO events VALUES(7,1,'{"kind":"variables","turn":3,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAU/AS/FHjGzF61wS6FUyyfqqrej+HHgnEaKPzbgu/E8OPwS9sGYiXoTe1A==","time":"2026-11-22T01:25:49.77967Z"}');
INSERT INTO events VALUES(8,1,'{"kind":"failed","turn":4,"from":7,"to":7,"messages":1,"tokens":20,"reason":"sealed:AHFzAU/AS/HVXV6jHdNI9VoKtStOrPyuL73fBA7/DzlYKzDp64elbkmkkbfFEmYrRaKpmm5OXlk9qoa4YteqiA==","time":"2026-11-22T01:25:49.781039Z"}');
INSERT INTO events VALUES(9,1,'{"kind":"summary","turn":5,"from":1,"to":4,"messages":4,"tokens":80,"reason":"sealed:AHFzAU/AS/HLV7KCPRrCCO17tl9aq57ubCEq0UGKHj97VDMNsnLI0USwBJd2HdCA7ZuPrMz8oUtYVK4p/Z9RlaX8PisarDgDvy6IGfwGwwzs19Ue","time":"2026-11-22T01:25:49.783985Z"}');
INSERT INTO events VALUES(10,1,'{"kind":"sent","turn":5,"from":5,"to":8,"messages":3,"tokens":52,"reason":"","call":{"system":23,"seen":7,"calls":1,"room":325,"context":[{"block":"summary","priority":1,"tokens":126,"units":4,"through":4},{"block":"variables","priority":2,"tokens":68,"units":1}]},"time":"2026-11-22T01:25:49.78722Z"}');
INSERT INTO events VALUES(11,1,'{"kind":"variables","turn":5,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAU/AS/F1/JseaDO/ARbMP7/uGWF38BHtGkYS4jMHChU4uyE371cMtrRuKQ==","time":"2026-11-22T01:25:49.78722Z"}');
CREATE TABLE named (
	session_id INTEGER NOT NULL,
	name       TEXT NOT NULL,
	value      BLOB NOT NULL,
	PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
INSERT INTO named VALUES(1,'summary',X'007173014fc04bf1f30259b6874b1ffc87c02fe85855d6a1ecf0707334f7cd8629f72029671a3ac9c3d0732833bdf72f7797fdebd3627dcf972ce4ded3e416c672b0cd45d1cb14d3d4f8103eb7ad6cb198f8c2a2a538148d542da70ecd71f1a15dbb3bc5c88f0fa2fc336de7693876147f9b73f65dc10b76be7f3adcc3d397d942e43fd8356cbf81017444b6b43365c26ba986e1163df748450b966f9ece5b786764f1f2');
INSERT INTO named VALUES(1,'system',X'007173014fc04bf135f6406311d0639f7d072972c84494106053f5d8ae32d8d790bb166119a059c40bd59e34e780bff4310b');
INSERT INTO named VALUES(1,'variables',X'007173014fc04bf1072758d5ed3ab124af4f57e4072c733bd930243c60a4545ea895dcfbef8d78d1aeaa7f69fa07e94f69a5e80f295f004c18bfe0f6f186321f295d305e3155ce09648a575587fc577f');
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE INDEX events_by_session ON events (session_id);
