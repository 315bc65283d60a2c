CREATE TABLE pennyweight_meta (version INTEGER NOT NULL);
CREATE TABLE pennyweight_run (
  id TEXT NOT NULL, suite TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL,
  data_hash TEXT NOT NULL, status TEXT NOT NULL, attempts BIGINT NOT NULL,
  created DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, settings TEXT NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE pennyweight_record (
  run TEXT NOT NULL, subject TEXT NOT NULL, tier TEXT NOT NULL, task_id TEXT NOT NULL,
  attempt INTEGER NOT NULL, fingerprint TEXT NOT NULL, status TEXT NOT NULL, error TEXT,
  error_kind TEXT, model TEXT, input TEXT, messages TEXT, target TEXT, category TEXT,
  capability TEXT, response TEXT, reasoning TEXT, tool_calls TEXT, logprobs TEXT, finish TEXT,
  truncated BOOLEAN, refused BOOLEAN, seed BIGINT, prompt_tokens BIGINT, completion_tokens BIGINT,
  cached_tokens BIGINT, reasoning_tokens BIGINT, latency_ms DOUBLE PRECISION,
  wait_ms DOUBLE PRECISION, tries INTEGER, cost_usd DOUBLE PRECISION,
  input_price DOUBLE PRECISION, output_price DOUBLE PRECISION, duration_seconds DOUBLE PRECISION,
  started DOUBLE PRECISION, ended DOUBLE PRECISION, pass_score DOUBLE PRECISION, extra TEXT,
  PRIMARY KEY (run, task_id, subject, tier, attempt)
);
CREATE TABLE pennyweight_call (
  id SERIAL_KEY, run TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
  tier TEXT NOT NULL, task_id TEXT NOT NULL, attempt INTEGER NOT NULL, model TEXT,
  status TEXT NOT NULL, prompt_tokens BIGINT, completion_tokens BIGINT,
  cost_usd DOUBLE PRECISION, latency_ms DOUBLE PRECISION, at DOUBLE PRECISION NOT NULL
);
CREATE INDEX pennyweight_call_run ON pennyweight_call (run);
INSERT INTO pennyweight_meta VALUES (1);
INSERT INTO pennyweight_run VALUES (
  '20260101-000000-0001', 'old', 'suite.yaml', 'suite: old', 'hash', 'done', 2, 1.5, 2.5, '{"seed": 7}'
);
INSERT INTO pennyweight_record
  (run, subject, tier, task_id, attempt, fingerprint, status, response, truncated, cost_usd)
VALUES
  ('20260101-000000-0001', 'm', 'T0', 'a', 1, 'f1', 'ok', 'four — 4', '0', 0.25),
  ('20260101-000000-0001', 'm', 'T0', 'b', 1, 'f2', 'error', NULL, NULL, NULL);
INSERT INTO pennyweight_call (run, kind, subject, tier, task_id, attempt, status, cost_usd, at) VALUES
  ('20260101-000000-0001', 'attempt', 'm', 'T0', 'a', 1, 'ok', 0.25, 1.75),
  ('20260101-000000-0001', 'attempt', 'm', 'T0', 'b', 1, 'server', NULL, 1.76);
