"""Lets a login insert memories into the view of that name, where an operator grants it.

A trigger checks the record, strips it of all that may be a secret, and puts it into a queue; the worker stores it as
the service stores one that is posted. By default no role may insert, because texts in the queue are not sealed.

Revision ID: 0007_insert_memories
Revises: 0006_memories_view
"""

from alembic import op

revision = "0007_insert_memories"
down_revision = "0006_memories_view"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

TABLE = """
CREATE TABLE inserted_memories (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    content text NOT NULL,
    metadata jsonb NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'dead')),
    attempts smallint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id)
)
"""

INDEX = (
    "CREATE INDEX inserted_memories_queue_idx ON inserted_memories (user_sub, available_at) WHERE status = 'pending'"
)

STRIP = r"""
CREATE FUNCTION casebank_strip(p_text text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET standard_conforming_strings = on AS $$
DECLARE
    mark CONSTANT text := '[REDACTED:sql]';
    -- escapes, invisible characters and split texts: all of the text goes
    disguise CONSTANT text := '\\u|\\/|\\x|%[2-7][0-9a-fA-F]|&#?\w+;|\\\n'
        '|["''`][ \t]*(\+|\.{1,2}|&|\|\||\\?\n)\s*\\*["''`]|[A-Za-z][аеорсухіѕԁ]+[A-Za-z]'
        '|[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\uff01-\uff5e]'
        '|\d[\u00a0\u2007\u2009\u202f\u2010-\u2013\u2212\u3000]\d';
    -- an option of a command, and where else a bare word may be a password: the rest of the text goes
    command CONSTANT text := '(^|\s)--?[a-z]|---|/p:|password\s+for|\m(basic|bearer) +\S{16}'
        '|\m(echo|(machine\s+\S+|default|vault)\s+login|rabbitmqctl|net\s+user?|config(ure)?\s+set)\M';
    -- a name for secrets: behind it, plain words are kept up to the first that is none
    name CONSTANT text := 'pass(?![aei])|\mpwd?\M|kennwort|contrase|mot[ _-]?de[ _-]?passe|senha|wachtwoord|senord'
        '|adgangskode|has[łŁl]o|heslo|jelsz|ifre|kata[ _-]sandi|parola|пароль|ПАРОЛЬ|पासवर्ड|كلمة المرور|密码|密碼'
        '|パスワード|비밀번호|identified|masterauth|[\w.-]key|salt|auth(orization)?\M|secret|token|cred|c[vs]c|cvv'
        '|(security|verification).?code|\mpin';
    -- words with letters and digits or signs, and long ones
    odd CONSTANT text := '\S*([A-Za-z]\S*([0-9@#$%^&*+=~]|![^\s.,;:!?)"''])|[0-9@#$%^&*+=~]\S*[A-Za-z]'
        '|[\w+/=~.-]{20}|xox|eyJ)\S*';
    kept text := p_text;
    place integer;
    tail text;
BEGIN
    IF kept ~ disguise THEN
        RETURN mark;
    END IF;
    kept := regexp_replace(kept, '(' || command || ').*', mark, 'i');
    place := regexp_instr(kept, name, 1, 1, 0, 'i');
    IF place > 0 THEN
        tail := substring(substr(kept, place) FROM '^(?:[[:alpha:]]+(?:''[[:alpha:]]+)?[.,;!?]?(?: +|$))*');
        kept := left(kept, place - 1) || tail || CASE WHEN length(kept) >= place + length(tail) THEN mark ELSE '' END;
    END IF;
    -- then numbers of four digits and more, in whatever groups
    RETURN regexp_replace(regexp_replace(kept, odd, mark, 'g'), '\d([^[:alpha:]]*\d){3}[^[:alpha:]]*', mark, 'g');
END $$
"""  # noqa: RUF001 - Cyrillic on purpose

INSERT = """
CREATE FUNCTION casebank_insert_memory() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
    entered CONSTANT text := nullif(current_setting('app.user_sub', true), '');
    texts CONSTANT text[] := '{procedure_name, semantic_description, initial_failure_summary, identified_root_cause,
        successful_intervention, learned_procedure_steps, example_scenario_abstract}';
    learned CONSTANT text := coalesce(NEW.metadata ->> 'status', 'procedure_learned');
    record CONSTANT jsonb := nullif(NEW.metadata -> 'data', 'null');
    writes boolean;
    refused text;
BEGIN
    IF entered IS NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'first SELECT casebank_enter(user, now()), in this transaction, which must be READ COMMITTED';
    END IF;
    -- as casebank_enter, which a caller that sets the user otherwise did not call: no erasure runs meanwhile
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(entered, 0));
    NEW.agent := coalesce(NEW.agent, 'context-eng');
    SELECT writing INTO writes FROM profiles WHERE user_sub = entered AND agent_key = NEW.agent;
    refused := CASE
        WHEN EXISTS (SELECT FROM erasures WHERE user_sub = encode(sha256(convert_to(entered, 'UTF8')), 'hex'))
            THEN 'the user was erased; POST /rest/v1/context_eng_memories takes memories of one who came back'
        WHEN writes IS FALSE THEN 'the memory of this agent is off'
        WHEN NEW.agent !~ '^[^\\x01-\\x1f\\x7f-\\x9f]{1,200}$'
            OR (writes IS NULL AND casebank_strip(NEW.agent) <> NEW.agent)
            THEN 'agent must have 1 to 200 characters, none a control, and a new one no digits beside letters, no sign'
        WHEN coalesce(length(NEW.content) > 20000 OR NEW.content !~ '\\S', true)
            THEN 'content must have 1 to 20000 characters'
        WHEN jsonb_typeof(NEW.metadata) IS DISTINCT FROM 'object' OR NEW.metadata - '{status, data}'::text[] <> '{}'
            THEN 'metadata must be an object with status and data'
        WHEN learned NOT IN ('procedure_learned', 'no_failure_detected')
            THEN 'status must be procedure_learned or no_failure_detected'
        WHEN (learned = 'no_failure_detected') <> (record IS NULL)
            THEN 'data is the record of a procedure_learned, and null with no_failure_detected'
        WHEN length(record::text) > 300000 THEN 'data must have at most 300000 characters'
        WHEN jsonb_typeof(record) <> 'object' OR NOT record ?& texts
            OR record - texts - 'critical_contextual_cues' <> '{}'
            THEN 'data must have ' || array_to_string(texts, ', ') || ', may have critical_contextual_cues, and no more'
        WHEN (SELECT count(*) FROM inserted_memories WHERE user_sub = entered) >= 1000
            THEN '1000 memories of this user wait: is a worker running? Are some dead (casebank requeue)?'
    END;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION '%', refused USING ERRCODE = 'check_violation';
    END IF;
    -- UUIDv7: the random one with the time before it
    NEW.id := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
        substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6
    ), 52, 1), 53, 1), 'hex')::uuid;
    NEW.content := left(casebank_strip(NEW.content), 20000);
    NEW.metadata := jsonb_build_object('status', learned, 'data', (
        SELECT jsonb_object_agg(field.key, CASE jsonb_typeof(field.value)
            WHEN 'array' THEN (
                SELECT coalesce(jsonb_agg(casebank_strip(step) ORDER BY place), '[]')
                FROM jsonb_array_elements_text(field.value) WITH ORDINALITY AS steps(step, place)
            )
            ELSE to_jsonb(casebank_strip(field.value #>> '{}'))
        END)
        FROM jsonb_each(record) AS field
    ));
    NEW.embedding := NULL;
    NEW.fts := NULL;
    NEW.created_dt := now();
    INSERT INTO inserted_memories (user_sub, id, agent_key, content, metadata)
    VALUES (entered, NEW.id, NEW.agent, NEW.content, NEW.metadata);
    PERFORM pg_notify('casebank_work', '');
    RETURN NEW;
END $$
"""

COMMENTS = {
    "TABLE inserted_memories": "memories inserted by SQL, stripped and not sealed, until the worker has stored them",
    "COLUMN inserted_memories.id": "of the case that it becomes",
    "COLUMN inserted_memories.metadata": "status and data of a learned-procedure record",
}
UNKNOWN = ("user_sub", "id", "agent_key", "content", "metadata", "last_error")
"""Columns of which the planner may keep no values."""
ACCESS = f"""
ALTER TABLE inserted_memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE inserted_memories FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON inserted_memories USING ({OWN}) WITH CHECK ({OWN});
CREATE POLICY queue ON inserted_memories TO casebank_worker USING (true);
GRANT SELECT, DELETE ON inserted_memories TO casebank_service;
GRANT
    SELECT (user_sub, id, agent_key, status, attempts, available_at, lease_token, created_at),
    UPDATE (status, attempts, available_at, lease_token, last_error)
    ON inserted_memories TO casebank_worker;

-- The trigger runs as the owner, a plain role where the login is no superuser. No other trigger may call its function.
CREATE POLICY owner_reads ON profiles FOR SELECT TO CURRENT_USER USING ({OWN});
CREATE POLICY owner_reads ON erasures FOR SELECT TO CURRENT_USER USING (true);
REVOKE EXECUTE ON FUNCTION casebank_insert_memory() FROM PUBLIC;
CREATE TRIGGER keep INSTEAD OF INSERT ON context_eng_memories
FOR EACH ROW EXECUTE FUNCTION casebank_insert_memory();
"""


def upgrade() -> None:
    run = op.get_bind().exec_driver_sql  # op.execute takes a colon in a pattern for a parameter
    for statement in (TABLE, INDEX, STRIP, INSERT):
        run(statement)
    for subject, comment in COMMENTS.items():
        run(f"COMMENT ON {subject} IS '{comment}'")
    for name in UNKNOWN:
        run(f"ALTER TABLE inserted_memories ALTER COLUMN {name} SET STATISTICS 0")
    run(f"DO $access$ BEGIN {ACCESS} END $access$")


def downgrade() -> None:
    op.execute("DROP TRIGGER keep ON context_eng_memories")
    op.execute("DROP FUNCTION casebank_insert_memory()")
    op.execute("DROP FUNCTION casebank_strip(text)")
    op.execute("DROP POLICY owner_reads ON profiles")
    op.execute("DROP POLICY owner_reads ON erasures")
    op.execute("DROP TABLE inserted_memories")
