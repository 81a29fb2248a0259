-- What people query; cli/docs/query.md documents every column. Times are UTC text, spans milliseconds, costs US dollars.

CREATE VIEW sessions AS
SELECT b.id AS bus, s.session, s.agent, s.project, s.model, b.host,
       strftime('%Y-%m-%dT%H:%M:%S', s.started / 1000000, 'unixepoch') || printf('.%06dZ', s.started % 1000000) AS started,
       strftime('%Y-%m-%dT%H:%M:%S', s.active / 1000000, 'unixepoch') || printf('.%06dZ', s.active % 1000000) AS last_active,
       strftime('%Y-%m-%dT%H:%M:%S', s.ended / 1000000, 'unixepoch') || printf('.%06dZ', s.ended % 1000000) AS ended,
       s.prompt, s.events, s.turns, s.tool_calls, s.failed, s.decisions, s.blocked, s.asked, s.input_tokens,
       s.output_tokens, s.cost / 1e9 AS cost_usd, s.first_seq, s.last_seq
FROM p_sessions s JOIN buses b USING (bus);

CREATE VIEW turns AS
SELECT b.id AS bus, t.session, t.turn, t.id AS turn_id, t.seq,
       strftime('%Y-%m-%dT%H:%M:%S', t.started / 1000000, 'unixepoch') || printf('.%06dZ', t.started % 1000000) AS started,
       strftime('%Y-%m-%dT%H:%M:%S', t.ended / 1000000, 'unixepoch') || printf('.%06dZ', t.ended % 1000000) AS ended,
       t.prompt, t.events, t.tool_calls, t.failed, t.blocked, t.input_tokens, t.output_tokens, t.cost / 1e9 AS cost_usd
FROM p_turns t JOIN buses b USING (bus);

CREATE VIEW tool_calls AS
SELECT b.id AS bus, c.seq, c.session, nullif(c.turn, 0) AS turn, x.agent, x.project, x.model, x.host, c.tool,
       c.tool_class, c.about,
       strftime('%Y-%m-%dT%H:%M:%S', c.started / 1000000, 'unixepoch') || printf('.%06dZ', c.started % 1000000) AS started,
       strftime('%Y-%m-%dT%H:%M:%S', c.ended / 1000000, 'unixepoch') || printf('.%06dZ', c.ended % 1000000) AS ended,
       c.took / 1e3 AS took_ms, c.status, c.exit_code, c.error, c.outcome, c.hook, c.ran_anyway, c.result_seq
FROM p_tool_calls c JOIN buses b USING (bus) JOIN scopes x USING (scope);

CREATE VIEW decisions AS
SELECT b.id AS bus, d.seq, d.cause, d.session, x.agent, x.project, x.model, x.host,
       strftime('%Y-%m-%dT%H:%M:%S', d.time / 1000000, 'unixepoch') || printf('.%06dZ', d.time % 1000000) AS time,
       d.tool, d.tool_class, d.outcome, d.hook, d.reason, d.took / 1e3 AS took_ms, d.waited_for
FROM p_decisions d JOIN buses b USING (bus) JOIN scopes x USING (scope);

CREATE VIEW verdicts AS
SELECT b.id AS bus, v.seq, v.number, d.cause, d.session, x.agent, x.project,
       strftime('%Y-%m-%dT%H:%M:%S', d.time / 1000000, 'unixepoch') || printf('.%06dZ', d.time % 1000000) AS time,
       v.hook, v.verdict, v.shadow, v.failed, v.unapproved, v.of_project, v.reason, v.exit_code, v.took / 1e3 AS took_ms
FROM p_verdicts v JOIN p_decisions d USING (bus, seq) JOIN buses b USING (bus) JOIN scopes x USING (scope);

CREATE VIEW hooks AS
WITH counted AS (
    SELECT hook, shadow, sum(calls) AS calls, sum(blocked) AS blocked, sum(asked) AS asked, sum(rewritten) AS rewritten,
           sum(context) AS context, sum(allowed) AS allowed, sum(failed) AS failed, sum(unapproved) AS unapproved,
           sum(timed) AS timed, total(took) AS took
    FROM f_hooks GROUP BY hook, shadow
), buckets AS (
    SELECT hook, shadow, up_to, sum(sum(calls)) OVER (PARTITION BY hook, shadow ORDER BY up_to) AS below
    FROM f_latency GROUP BY hook, shadow, up_to
)
SELECT hook, shadow, calls, blocked, asked, rewritten, context, allowed, failed, unapproved,
       took / 1e3 / nullif(timed, 0) AS mean_ms,
       (SELECT nullif(min(up_to), 9223372036854775807) / 1e3 FROM buckets b WHERE b.hook = c.hook AND b.shadow = c.shadow AND b.below * 2 >= c.timed) AS p50_ms,
       (SELECT nullif(min(up_to), 9223372036854775807) / 1e3 FROM buckets b WHERE b.hook = c.hook AND b.shadow = c.shadow AND b.below * 20 >= c.timed * 19) AS p95_ms
FROM counted c;

CREATE VIEW usage AS
SELECT b.id AS bus, u.seq, u.session, nullif(u.turn, 0) AS turn, x.agent, x.project, x.model, x.host,
       strftime('%Y-%m-%dT%H:%M:%S', u.time / 1000000, 'unixepoch') || printf('.%06dZ', u.time % 1000000) AS time,
       u.covers, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.reasoning_tokens,
       u.total_tokens, u.cost / 1e9 AS cost_usd
FROM p_usage u JOIN buses b USING (bus) JOIN scopes x USING (scope);

CREATE VIEW files AS
SELECT b.id AS bus, strftime('%Y-%m-%dT%H:00:00Z', f.hour * 3600, 'unixepoch') AS hour, x.agent, x.project,
       x.model, x.host, f.session, f.path, f.access, f.uses
FROM f_files f JOIN scopes x USING (scope) JOIN buses b USING (bus);

CREATE VIEW hosts AS
SELECT b.id AS bus, strftime('%Y-%m-%dT%H:00:00Z', h.hour * 3600, 'unixepoch') AS hour, x.agent, x.project,
       x.model, x.host AS machine, h.session, h.host, h.uses
FROM f_hosts h JOIN scopes x USING (scope) JOIN buses b USING (bus);
