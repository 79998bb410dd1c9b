-- A session whose head has a seal: SQLite's format 1, records of format 2.
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
INSERT INTO sessions VALUES(1,'m','s',3115009901964515618,'{"last":9,"turns":5,"first":5,"in_window":4,"tokens":80,"flushes":1,"last_said":"2026-11-22T01:29:58.721508Z"}');
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
INSERT INTO entries VALUES(68719476737,1,1,12,1795310998679671,0,'sfirst','{"id":"sfirst","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/EhD6umXg0/4mxbujYQ8S6aMhrYRXPSLgHbGoynpKOXUTJv2FyW0fDembP1AjWAqfHs1qJyUzXU3xjOu8uS4Ce5I5jThsrrUb55UdNzeoDZxfQ8iGT5fuTmcGflydqDBooLraJ2HVs="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476738,1,1,27,1795310998679671,0,'sfirst!','{"id":"sfirst!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/F/AM+5FjoZIQS5Syde06Mx1kt7aiZOtuAoyuYdOa86KZWgRSuY4vQNTSmXKzIqrCnutnH3Nejex8AuMDrr7Ml4N0lREqxk0tHazoLPvQvJd15A3GAOvbiBdmHT03Pik3b2lngqIw2aXS2f3ziRGub67kmUZkAA"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476739,1,2,13,1795310998703844,0,'ssecond','{"id":"ssecond","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/GvhWzMWTMKUdq9BILXu90wD2gUmMur9ei1eg89sGQ4teECq2c8IjftkFBeu+ETV9hUdwK4Fs1ftwoDjRJgpsb7CqX1dLRbsxP9cnFCDFu8UZKRKjz+s9PYubak6eFhN0vBGiqa565xwQ=="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476740,1,2,28,1795310998703844,0,'ssecond!','{"id":"ssecond!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/HbrQTW1tNJgh+XVspi+/U8Yx1AXApsMAuQ6kPIiDATs8gdfO4dp37wyNJtSTX4G2L8NDBXdGGfg3NXlaQuETHbMALhYbivoaqp2HmuL5RXj65ZQkuCEtVAG2PeKvW09C65aiZVhZUxkF5n7JW3b8IPDznLUJoo6yI="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476741,1,3,12,1795310998709373,0,'sthird','{"id":"sthird","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/FqgSWFAEzE49K/3QfQ5UemCjr0jCnJvrtkn2Q9qRrfSG4//uuTilUkBlfmGu/isBoKLdROHxdnIJ4JqrK0CBC5mXie8zyRNKRIQ4grrYTuYeQESIqcOU6tkqx1KOYqZaTh9O4Kx38="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476742,1,3,27,1795310998709373,0,'sthird!','{"id":"sthird!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/FPL0sbAGi526ww5veBu0WqrUhyw/Tgu8Bfm34+coZO4OXzX1L/q2CZZYm4kK31OjytQ3Q/i4dxUevPLPsbQ/Vj08C1GDbBQ1iShPsjv42nhrByHD9xUUafNobJQpM+3sZbeASzlrKKKTs2SIqr4Xe4ltVQlZtJ"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476743,1,4,20,1795310998714933,1,'38a77f61d2f764d3441d9335d154137d','{"id":"38a77f61d2f764d3441d9335d154137d","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/FKq0fsvZhszmTTe/+V8YQ2dqeizrgJhFtejiMRVSQKfgdwMzUMvGJJV3ADibYA/iuCdlVV6RSSf+ombPpbSIBToiBuDL3eb6HLDzJPWf/JzVKOllOWAb50U7WNkjXEIG0rHEuOTDfDZp7meU61dUpEfMkRctZPSSVJonnPaL0jGsDh/thhwMv0"},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476744,1,5,13,1795310998721508,0,'sfourth','{"id":"sfourth","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/ENF0LK/E/XVjhMHpiryCkgl+U6e7UVL3i9VXdO4g5N/6kDspVy2vHwdjWtN3BFAHO+MriI2bxKy1cmqyfa8G6jiptxfW+e9v2cvc3WGZNkxNLnA3JfaAH40LyO2AymUDfOK3o9mbwIYQ=="},"mime_type":"application/vnd.qtype.sealed"}]}');
INSERT INTO entries VALUES(68719476745,1,5,28,1795310998721508,0,'sfourth!','{"id":"sfourth!","role":"user","blocks":[{"type":"bytes","content":{"base64":"AHFzAk/AS/EO30cg1qC6DLMqTaw3CDQXEqVPnWd5nnS3Gfud8vccMEM973TuZWWc+5qfLy3mry0taC3iILt6fx71Yx+3H75rerOoqQB9voI5P49aismTud7rN06yXPNNnGJBwYnw0KVIYVE3iK6wIatuAkhDPKIXzJ9jQs0NAXo="},"mime_type":"application/vnd.qtype.sealed"}]}');
CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	session_id INTEGER NOT NULL,
	event      TEXT NOT NULL -- JSON
);
INSERT INTO events VALUES(1,1,'{"kind":"sent","turn":1,"from":1,"to":1,"messages":1,"tokens":12,"reason":"","call":{"system":23,"seen":0,"calls":1,"room":365,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":0,"units":0}]},"time":"2026-11-22T01:29:58.679671Z"}');
INSERT INTO events VALUES(2,1,'{"kind":"variables","turn":1,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAk/AS/FZGMoX5G7VGeiuW3BvMIJiHW4FQ9w41nF825G5BwpSwXIDSP5Z6A==","time":"2026-11-22T01:29:58.679671Z"}');
INSERT INTO events VALUES(3,1,'{"kind":"sent","turn":2,"from":1,"to":3,"messages":3,"tokens":52,"reason":"","call":{"system":23,"seen":2,"calls":1,"room":325,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":68,"units":1}]},"time":"2026-11-22T01:29:58.703844Z"}');
INSERT INTO events VALUES(4,1,'{"kind":"variables","turn":2,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAk/AS/EA6WU7II/HABbQwmJfmq57W6XBbLky/q3qhA3trwEs2HUrOvv/Ag==","time":"2026-11-22T01:29:58.703844Z"}');
INSERT INTO events VALUES(5,1,'{"kind":"sent","turn":3,"from":1,"to":5,"messages":5,"tokens":92,"reason":"","call":{"system":23,"seen":4,"calls":1,"room":285,"context":[{"block":"summary","priority":1,"tokens":0,"units":0},{"block":"variables","priority":2,"tokens":69,"units":1}]},"time":"2026-11-22T01:29:58.709373Z"}');
INSERT INTO events VALUES(6,1,'{"kind":"flush","turn":3,"from":1,"to":4,"messages":4,"tokens":80,"rule":"flush","before":119,"limit":100,"unit":"tokens","reason":"sealed:AHFzAk/AS/Fgf+xw8E6CMELsSUrdumBOn+ojb8DYwy2PelMRWd9sVQaMF3EEBwhevtSobzyz9XhpPqHeUbIolKiaEFyg3/1KALuYi963ZMLoXNXHzuBsy9Yve4MGPMqxXAdgcGw4Ii768vIA8CZ7Ss5orlXG/LjZVwCShr0BaFB5wmaqt5hBAJL4na1OwTw8B+EG7TpvX7ujrCIJJUMk1LGHivFzziyD4jATO6skWYlp","time":"2026-11-22T01:29:58.709373Z"}');
INSERT INTO events VALUES(7,1,'{"kind":"variables","turn":3,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAk/AS/E/cTUhd9pmp4LUpCvNzdG71Lq7juMwx5bzesbC4QsSu+VviPyVVA==","time":"2026-11-22T01:29:58.709373Z"}');
INSERT INTO events VALUES(8,1,'{"kind":"failed","turn":4,"from":7,"to":7,"messages":1,"tokens":20,"reason":"sealed:AHFzAk/AS/Ey5ivg6JOYTAgllDTDanbQu4PrLXmFmWnGNeM/7fTjopbf1lMGhDJm/PwTzXQ09GVR6sIfky6m6Q==","time":"2026-11-22T01:29:58.714933Z"}');
INSERT INTO events VALUES(9,1,'{"kind":"summary","turn":5,"from":1,"to":4,"messages":4,"tokens":80,"reason":"sealed:AHFzAk/AS/E8dBtv9+txQotDEfTk2ii6gfaMxfJ4BUYFmMO4bbKkvKUNvIar43D3bUYgv37fpyvWjQHlXKfGPldwebzEliNOAE8rtDodHNhScjGe","time":"2026-11-22T01:29:58.719967Z"}');
INSERT INTO events VALUES(10,1,'{"kind":"sent","turn":5,"from":5,"to":8,"messages":3,"tokens":52,"reason":"","call":{"system":23,"seen":7,"calls":1,"room":325,"context":[{"block":"summary","priority":1,"tokens":126,"units":4,"through":4},{"block":"variables","priority":2,"tokens":68,"units":1}]},"time":"2026-11-22T01:29:58.721508Z"}');
INSERT INTO events VALUES(11,1,'{"kind":"variables","turn":5,"from":0,"to":0,"messages":0,"tokens":0,"reason":"sealed:AHFzAk/AS/H40CJFanI+iNJCOKz4GlMptrohXuIhvz3RwojCn8v/GLVlJVSgKA==","time":"2026-11-22T01:29:58.721508Z"}');
CREATE TABLE named (
	session_id INTEGER NOT NULL,
	name       TEXT NOT NULL,
	value      BLOB NOT NULL,
	PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
INSERT INTO named VALUES(1,'qtype.seal',X'007173024fc04bf17399d24e1f3ea2a3fb26983256d9df456bc9a458b64eafcac5c70db43f0b1a5ea25b656dbce7f0e90dd1bf0b204ab7b12b7873a854fc1f5c3dba0e7b5ac5721395e50e85a8e4b6a62946221b197350ac93fbc872e56ef1321ee478be7f4e1d0a11a32b8b4fd4cee4a4115fdfa99c64f1b35611677a23970c7a8051dc38f4919c0147befc9aacfc461c38f07a8de38b558c800701d8577a0bfda4897c7a50e1e58a0b1cc9356966344e81529ed6829a867c7943a39ae8f5dc57a227ad076f419da545b4ca113862bce8f3bc218f7008fe0b724c66c0c2854e7644a0591060a1417d18e2a5fbad67fdc2e05308c620215aaa40465317e14080bed1afc72789c075c9adebf0aa983d13bd31de21160526f7316d7635477ff94c3ef9ffb0d99e8b383a5f1b9fd52b8e0da720406ec9e1891f4ea82073a37390a9367c0734ac46b0c09d5ed7bde818c7220758fd2857aff6d1eadc30c026c63475a476f4b221a14c82f5855a8dcec8bc33c7b3a1114c8d5d3d2c5206f473a30c0ef5e6c28ce9e0a6c02c63a5a9999e61e5a4625d91');
INSERT INTO named VALUES(1,'summary',X'007173024fc04bf10ec353af1076ba947d0d11efe2fa2393a75ff2eb6a2922d610c0e45741843d5f78ebf2aa4424ee0dd5f54f85c8a6340f2e34a13dcee79cbfc53024afaf3c611b91be49f98977f0558035db615423f0129f2f988d207846f6e6f2379b83f8dea7e5d3e2eee115ff21a74aa7d1ba884df2eaef4caaeaa372e167ff569df26fe750d110570de452a5f91758d174c5b092d2992aec372d05a841a39a4531');
INSERT INTO named VALUES(1,'system',X'007173024fc04bf13d728bf73d16090dabfd94cfd219e1872068c820eb87ca451ff3e20b5ea4458e0954f7a6d4bd784aebae');
INSERT INTO named VALUES(1,'variables',X'007173024fc04bf1f48175b461c1ef1ebfa79f04b7883985f17fa10aae22c6fc126b6609b78cec38de287356580d9c604b4433b5108a87883d08943267cedf482726003681e65d57fb23c6a457f4a249');
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE INDEX events_by_session ON events (session_id);
