-- The schema of the service's database, version 4, as PostgreSQL has it.
--
-- gpu-scheduler creates it, and brings an older one up to date when it starts; nobody has to run
-- this file. The steps are in src/drivers/store/schema.cpp, and a test compares them with it.
-- SQLite has the same tables and columns: its states are text, generated columns are virtual, and
-- there is no function.
--
-- Times are milliseconds since 1970, amounts of GPUs in thousandths where a name ends in _milli.
-- Ids are a kind and a number: job-17 has seq 17.

CREATE TABLE schema_version (version INTEGER NOT NULL);

-- In the order of their names: those that have ended come first, live ones from 'pending' on.
CREATE TYPE job_state AS ENUM ('cancelled', 'completed', 'failed', 'pending', 'preempted',
  'running', 'scheduled');

-- One row: who leads (term), the last turn that was committed, and the numbers given out.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  term BIGINT NOT NULL,
  turn BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  last_event BIGINT NOT NULL,
  leader BIGINT NOT NULL,
  heartbeat TIMESTAMPTZ NOT NULL
);
INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0, clock_timestamp());

-- Every job that has not been forgotten. spec is what was submitted, as JSON; placement its
-- processes. Texts that say nothing are empty; times that have not come are 0.
CREATE TABLE jobs (
  seq BIGINT PRIMARY KEY,
  id TEXT GENERATED ALWAYS AS ('job-' || CAST(seq AS TEXT)) STORED,
  tenant TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  gpu_count INTEGER NOT NULL,
  spec TEXT NOT NULL,
  labels TEXT NOT NULL,
  array_id TEXT COLLATE "C" NOT NULL,
  submitted BIGINT NOT NULL,
  state job_state NOT NULL,
  priority INTEGER NOT NULL,
  held BOOLEAN NOT NULL,
  ending TEXT NOT NULL,
  scheduled BIGINT NOT NULL,
  started BIGINT NOT NULL,
  completed BIGINT NOT NULL,
  attempt INTEGER NOT NULL,
  preempted_count INTEGER NOT NULL,
  exit_code INTEGER,
  signal INTEGER NOT NULL,
  message TEXT NOT NULL,
  placement TEXT NOT NULL,
  gpu_ms BIGINT NOT NULL
);

-- The labels of jobs that have any, to find the jobs by.
CREATE TABLE job_labels (
  key TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (key, value, seq)
);

-- spec is the tenant as JSON; the limits stand beside it for people, and so does what is in use.
CREATE TABLE tenants (
  seq BIGINT PRIMARY KEY,
  id TEXT GENERATED ALWAYS AS ('tenant-' || CAST(seq AS TEXT)) STORED,
  name TEXT COLLATE "C" NOT NULL,
  spec TEXT NOT NULL,
  active BOOLEAN NOT NULL,
  created BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  max_gp_us BIGINT NOT NULL,
  max_gpu_memory_mb BIGINT NOT NULL,
  max_cpu_cores BIGINT NOT NULL,
  max_memory_mb BIGINT NOT NULL,
  max_concurrent_jobs BIGINT NOT NULL,
  current_gpu_milli BIGINT NOT NULL,
  current_gp_us DOUBLE PRECISION
    GENERATED ALWAYS AS (CAST(current_gpu_milli AS DOUBLE PRECISION) / 1000) STORED,
  current_gpu_memory_mb BIGINT NOT NULL,
  current_cpu_milli BIGINT NOT NULL,
  current_memory_mb BIGINT NOT NULL,
  current_jobs BIGINT NOT NULL,
  total_jobs BIGINT NOT NULL,
  successful_jobs BIGINT NOT NULL,
  failed_jobs BIGINT NOT NULL,
  gpu_ms BIGINT NOT NULL,
  total_cost DOUBLE PRECISION NOT NULL
);

-- node is the machine as its agent reported it last, as JSON; instance tells agents of one name
-- apart.
CREATE TABLE nodes (
  name TEXT COLLATE "C" PRIMARY KEY,
  address TEXT NOT NULL,
  version TEXT NOT NULL,
  container_runtime TEXT NOT NULL,
  gpu_count INTEGER NOT NULL,
  simulated BOOLEAN NOT NULL,
  cordoned BOOLEAN NOT NULL,
  draining BOOLEAN NOT NULL,
  registered BIGINT NOT NULL,
  node TEXT NOT NULL,
  instance TEXT NOT NULL DEFAULT ''
);

-- What happened, in order. job is the number of a job, 0: none.
CREATE TABLE events (
  id BIGINT PRIMARY KEY,
  time BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  job BIGINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  node TEXT NOT NULL,
  message TEXT NOT NULL,
  data TEXT NOT NULL
);

-- GPU time and cost of a tenant in the hour that begins at `hour`.
CREATE TABLE usage_hours (
  hour BIGINT NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  gpu_ms BIGINT NOT NULL,
  jobs_ended BIGINT NOT NULL,
  cost DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (hour, tenant)
);

-- Submissions that may come twice: the same key gets the same answer.
CREATE TABLE submit_keys (
  tenant TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  body_hash BIGINT NOT NULL,
  answer TEXT NOT NULL,
  time BIGINT NOT NULL,
  PRIMARY KEY (tenant, key)
);

-- The fence: a turn is written only in the writer's own term, and once.
CREATE FUNCTION advance_turn(my_term BIGINT, new_turn BIGINT, new_seq BIGINT, new_event BIGINT)
RETURNS VOID LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE meta SET turn = new_turn, last_seq = greatest(last_seq, new_seq),
    last_event = greatest(last_event, new_event), heartbeat = clock_timestamp()
    WHERE term = my_term AND turn < new_turn;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another term, or a turn that is there already' USING ERRCODE = 'GS001';
  END IF;
END $body$;

-- Every list has an index; see src/drivers/store/job_list.hpp.
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE INDEX jobs_by_tenant ON jobs (tenant, state, seq);
CREATE INDEX live_jobs_by_priority ON jobs (priority, seq, tenant)
  WHERE state >= 'pending';
CREATE INDEX ended_jobs_by_priority ON jobs (state, priority, seq, tenant)
  WHERE state < 'pending';
CREATE INDEX jobs_by_name ON jobs (name, seq, tenant);
CREATE INDEX jobs_by_array ON jobs (array_id, seq) WHERE array_id <> '';
CREATE INDEX jobs_by_end ON jobs (completed)
  WHERE state < 'pending';
CREATE INDEX events_by_job ON events (job, id) WHERE job <> 0;
CREATE INDEX events_by_tenant ON events (tenant, id) WHERE tenant <> '';
CREATE INDEX events_by_type ON events (type, id);
CREATE INDEX usage_by_tenant ON usage_hours (tenant, hour);
CREATE INDEX submit_keys_by_time ON submit_keys (time);

INSERT INTO schema_version VALUES (1), (2), (3), (4);
