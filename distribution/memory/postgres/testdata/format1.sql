-- Tables of the first version of this package, format 1. Never change them. Each %s is the
-- prefix of the table names.
CREATE TABLE %sformat (version int NOT NULL);
INSERT INTO %sformat VALUES (1);
CREATE TABLE %ssessions (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, memory_key bytea NOT NULL, session_key bytea NOT NULL, session bytea NOT NULL, version bigint NOT NULL, state text NOT NULL, UNIQUE (memory_key, session_key)) WITH (fillfactor = 60);
CREATE INDEX %ssessions_in_order ON %ssessions (memory_key, (substring(session FROM 1 FOR 256)));
CREATE TABLE %sentries (session_id bigint NOT NULL, seq bigint NOT NULL, turn bigint NOT NULL, tokens bigint NOT NULL, time timestamptz NOT NULL, failed boolean NOT NULL, message_key bytea NOT NULL, message text NOT NULL, PRIMARY KEY (session_id, seq));
CREATE UNIQUE INDEX %sentries_by_message ON %sentries (session_id, message_key) WHERE NOT failed;
CREATE TABLE %sevents (session_id bigint NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, event text NOT NULL, PRIMARY KEY (session_id, id));
CREATE TABLE %snamed (session_id bigint NOT NULL, name bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (session_id, name));
INSERT INTO %ssessions (memory_key, session_key, session, version, state) VALUES ('m', 's', 's', 2075817852832162630, '{"last":3,"turns":2,"first":3,"in_window":1,"tokens":5,"flushes":1,"last_said":"2026-11-01T22:33:56.342116Z"}');
INSERT INTO %sentries VALUES (1, 1, 1, 9, '2026-11-01 22:33:56.342116+00', false, 'a', '{"id":"a","role":"user","blocks":[{"type":"text","content":"old question"}]}');
INSERT INTO %sentries VALUES (1, 2, 1, 7, '2026-11-01 22:33:56.342116+00', false, 'b', '{"id":"b","role":"assistant","blocks":[{"type":"text","content":"old answer"}]}');
INSERT INTO %sentries VALUES (1, 3, 2, 5, '2026-11-01 22:33:56.342116+00', false, 'c', '{"id":"c","role":"user","blocks":[{"type":"text","content":"and now?"}]}');
INSERT INTO %sevents (session_id, event) VALUES (1, '{"kind":"flush","turn":2,"from":1,"to":2,"messages":2,"tokens":16,"rule":"flush","before":21,"limit":20,"unit":"tokens","reason":"over","time":"2026-11-01T22:33:56.342116Z"}');
INSERT INTO %snamed VALUES (1, 'system', 'Be kind.');
