"""The audit as a chain that shows what was done to it, the tombstones likewise, and tokens that can be revoked.

Revision ID: 0012
Revises: 0014
Create Date: 2026-11-22 08:20:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0012"
down_revision = "0014"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"
USER_TABLES = ("audit_links", "audit_heads")
SERVICE_TABLES = ("erasure_links", "erasure_heads", "installation_keys", "token_revocations", "readmissions")

# Functions that write what the service may only read run as the owner, and look nowhere but here.
AS_OWNER = "SECURITY DEFINER SET search_path = public, pg_temp"

# What an entry says, as text that anybody can build again: writer/audit/links.py does. A name and the tombstone that
# takes its place when its bearer is erased are the same to it.
CONTENT = """
CREATE FUNCTION casebank_audit_content(entry audit) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(
        entry.user_sub, entry.id::text, entry.agent_key,
        CASE WHEN entry.actor ~ '^erased:[0-9a-f]{64}$' THEN substr(entry.actor, 8)
            ELSE encode(sha256(convert_to(entry.actor, 'UTF8')), 'hex') END,
        entry.action, entry.subject_id::text, entry.payload::text,
        (extract(epoch FROM entry.created_at) * 1000000)::bigint, encode(entry.mac, 'hex')
    )::text
$$
"""

HASH = """
CREATE FUNCTION casebank_link_hash(p_before bytea, p_seq bigint, p_content text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(p_before || int8send(p_seq) || convert_to(p_content, 'UTF8')) $$
"""

# The head's row is the lock: two transactions of one user link one after the other. It is taken when they commit and
# nothing is waited for after it, so nobody can wait for each other.
LINK = """
CREATE FUNCTION casebank_link(entry audit) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    content text := casebank_audit_content(entry);
    n bigint;
    h bytea;
BEGIN
    LOOP
        UPDATE audit_heads SET seq = seq + 1, hash = casebank_link_hash(hash, seq + 1, content)
        WHERE user_sub = entry.user_sub RETURNING seq, hash INTO n, h;
        EXIT WHEN FOUND;
        INSERT INTO audit_heads (user_sub, seq, hash)
        VALUES (entry.user_sub, 0, sha256(convert_to(entry.user_sub, 'UTF8'))) ON CONFLICT DO NOTHING;
    END LOOP;
    INSERT INTO audit_links (user_sub, seq, entry_id, hash) VALUES (entry.user_sub, n, entry.id, h);
END $$
"""

LINK_NEW = f"""
CREATE FUNCTION casebank_link_new() RETURNS trigger LANGUAGE plpgsql {AS_OWNER} AS $$
BEGIN
    PERFORM casebank_link(NEW);
    RETURN NULL;
END $$
"""

# A user's entries go with the user, or from the start up to where the pruning of the audit has got; nothing else.
KEEP_ENTRIES = """
CREATE FUNCTION casebank_keep_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'casebank_service' AND EXISTS (
        SELECT FROM gone JOIN audit_heads AS h USING (user_sub)
        LEFT JOIN audit_links AS l ON l.user_sub = gone.user_sub AND l.entry_id = gone.id
        WHERE l.seq IS NULL OR l.seq > h.pruned_seq
    ) THEN
        RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$
"""

KEEP_LINKS = """
CREATE FUNCTION casebank_keep_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'casebank_service'
        AND EXISTS (SELECT FROM gone JOIN audit_heads AS h USING (user_sub) WHERE gone.seq > h.pruned_seq)
    THEN
        RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$
"""

# The head goes first, and only in a transaction that leaves a tombstone.
KEEP_HEAD = """
CREATE FUNCTION casebank_keep_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'casebank_service' AND NOT EXISTS (
        SELECT FROM erasures
        WHERE user_sub = encode(sha256(convert_to(OLD.user_sub, 'UTF8')), 'hex') AND erased_at >= now()
    ) THEN
        RAISE EXCEPTION 'the audit goes with its user or not at all' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$
"""

LINK_ERASURE = f"""
CREATE FUNCTION casebank_link_erasure() RETURNS trigger LANGUAGE plpgsql {AS_OWNER} AS $$
DECLARE
    content text := jsonb_build_array(NEW.user_sub, (extract(epoch FROM NEW.erased_at) * 1000000)::bigint)::text;
    n bigint;
    h bytea;
BEGIN
    UPDATE erasure_heads SET seq = seq + 1, hash = casebank_link_hash(hash, seq + 1, content)
    RETURNING seq, hash INTO n, h;
    INSERT INTO erasure_links (seq, user_sha256, erased_at, hash) VALUES (n, NEW.user_sub, NEW.erased_at, h);
    RETURN NULL;
END $$
"""

# As before, and the error tells when.
ENTER = """
CREATE OR REPLACE FUNCTION casebank_enter(p_user_sub text, p_authorised_at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_erased_at timestamptz;
BEGIN
    PERFORM set_config('app.user_sub', p_user_sub, true);
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_user_sub, 0));
    SELECT max(erased_at) INTO v_erased_at FROM erasures
    WHERE user_sub = encode(sha256(convert_to(p_user_sub, 'UTF8')), 'hex') AND erased_at >= p_authorised_at;
    IF v_erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'the user was erased' USING ERRCODE = 'CB410',
            DETAIL = to_char(v_erased_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
    END IF;
    RETURN true;
END $$
"""

# What may hold a digest of a user's name or words, or words of the operator: the planner does without.
WORDS = {
    "audit": ("mac",),
    "audit_links": ("hash",),
    "audit_heads": ("hash", "pruned_hash", "seal"),
    "erasure_links": ("user_sha256", "hash"),
    "erasure_heads": ("hash", "seal"),
    "installation_keys": ("wrapped_key",),
    "token_revocations": ("jti_sha256", "subject_sha256", "why"),
    "readmissions": ("user_sha256", "actor_sha256"),
}

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""
GATHERED_BEFORE = (
    "audit",
    "case_embeddings",
    "case_tools",
    "cases",
    "decision_slots",
    "decisions",
    "erasures",
    "llm_usage",
    "policies",
    "procedures",
    "profiles",
    "rate_limits",
    "rewards",
    "user_keys",
)

FUNCTIONS = (ENTER, CONTENT, HASH, LINK, LINK_NEW, KEEP_ENTRIES, KEEP_LINKS, KEEP_HEAD, LINK_ERASURE)

CHAIN_WHAT_IS_THERE = (
    """
    DO $$
    DECLARE entry audit;
    BEGIN
        FOR entry IN SELECT * FROM audit ORDER BY user_sub, id LOOP
            PERFORM casebank_link(entry);
        END LOOP;
    END $$
    """,
    "INSERT INTO erasure_heads (chain, seq, hash) VALUES ('erasures', 0, sha256(convert_to('erasures', 'UTF8')))",
    """
    DO $$
    DECLARE tombstone erasures;
    BEGIN
        FOR tombstone IN SELECT * FROM erasures ORDER BY erased_at, user_sub LOOP
            UPDATE erasure_heads SET seq = seq + 1, hash = casebank_link_hash(hash, seq + 1, jsonb_build_array(
                tombstone.user_sub, (extract(epoch FROM tombstone.erased_at) * 1000000)::bigint)::text);
            INSERT INTO erasure_links (seq, user_sha256, erased_at, hash)
            SELECT seq, tombstone.user_sub, tombstone.erased_at, hash FROM erasure_heads;
        END LOOP;
    END $$
    """,
)

TRIGGERS = (
    """
    CREATE CONSTRAINT TRIGGER link AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION casebank_link_new()
    """,
    """
    CREATE CONSTRAINT TRIGGER link AFTER INSERT ON erasures DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION casebank_link_erasure()
    """,
    """
    CREATE TRIGGER keep AFTER DELETE ON audit REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION casebank_keep_entries()
    """,
    """
    CREATE TRIGGER keep AFTER DELETE ON audit_links REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION casebank_keep_links()
    """,
    """
    CREATE CONSTRAINT TRIGGER keep AFTER DELETE ON audit_heads DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION casebank_keep_head()
    """,
)

ACCESS = (
    *(f"CREATE POLICY own_rows ON {table} USING ({OWN}) WITH CHECK ({OWN})" for table in USER_TABLES),
    *(f"GRANT SELECT, DELETE ON {table} TO casebank_service" for table in USER_TABLES),
    "GRANT UPDATE (sealed_seq, seal, pruned_seq, pruned_hash) ON audit_heads TO casebank_service",
    "REVOKE UPDATE ON audit FROM casebank_service",
    # whoever checks and seals the chains of all users must know whose there are, and who was erased; no more
    "CREATE POLICY chains ON audit_heads FOR SELECT TO casebank_worker USING (true)",
    "CREATE POLICY chains ON audit_links FOR SELECT TO casebank_worker USING (true)",
    "CREATE POLICY chains ON audit FOR SELECT TO casebank_worker USING (true)",
    "CREATE POLICY chains ON erasures FOR SELECT TO casebank_worker USING (true)",
    "GRANT SELECT (user_sub, seq, sealed_seq) ON audit_heads TO casebank_worker",
    "GRANT SELECT (user_sub) ON audit_links TO casebank_worker",
    "GRANT SELECT (user_sub) ON audit TO casebank_worker",
    "GRANT SELECT (user_sub, erased_at) ON erasures TO casebank_worker",
    # the triggers' own role, which a login without superuser's rights is; the worker reads and seals
    "CREATE POLICY chain ON erasure_links USING (true) WITH CHECK (true)",
    "CREATE POLICY chain ON erasure_heads USING (true) WITH CHECK (true)",
    "GRANT SELECT ON erasure_links, erasure_heads TO casebank_worker",
    "GRANT UPDATE (sealed_seq, seal) ON erasure_heads TO casebank_worker",
    "CREATE POLICY worker ON installation_keys TO casebank_worker USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, UPDATE ON installation_keys TO casebank_worker",
    "CREATE POLICY worker ON token_revocations TO casebank_worker USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, DELETE ON token_revocations TO casebank_worker",
    "CREATE POLICY worker ON readmissions TO casebank_worker USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, DELETE ON readmissions TO casebank_worker",
    "REVOKE EXECUTE ON FUNCTION casebank_link(audit) FROM PUBLIC",
)


def upgrade() -> None:
    op.add_column(
        "audit",
        sa.Column(
            "mac", sa.LargeBinary(), nullable=True, comment="HMAC under the audit key; null: from before there was one"
        ),
    )
    make_chains()
    make_service_tables()
    for function in FUNCTIONS:
        op.execute(function)
    for table in ("audit", "erasures"):  # for the owner, who links every user's rows
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    for statement in CHAIN_WHAT_IS_THERE:
        op.execute(statement)
    for table in ("audit", "erasures"):
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for table in (*USER_TABLES, *SERVICE_TABLES):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for statement in (*TRIGGERS, *ACCESS):
        op.execute(statement)
    keep_words_out_of_statistics()


def keep_words_out_of_statistics() -> None:
    for table, columns in WORDS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    op.execute(GATHER.format(tables=", ".join((*GATHERED_BEFORE, *USER_TABLES))))


def make_chains() -> None:
    op.create_table(
        "audit_links",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False, comment="1-based, without gaps"),
        sa.Column(
            "entry_id",
            sa.Uuid(),
            nullable=False,
            comment="no foreign key: a link outlives an entry that somebody deletes",
        ),
        sa.Column(
            "hash",
            sa.LargeBinary(),
            nullable=False,
            comment="sha256 of the link before, the number and the entry",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_sub", "seq", name=op.f("audit_links_pkey")),
        sa.UniqueConstraint("user_sub", "entry_id", name=op.f("audit_links_user_sub_entry_id_key")),
        comment="the chain of a user's audit entries, in the order of their commits; written by a trigger alone",
    )
    op.create_table(
        "audit_heads",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False, comment="of the last link"),
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="of the last link"),
        sa.Column(
            "pruned_seq",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="up to here entries are gone",
        ),
        sa.Column("pruned_hash", sa.LargeBinary(), nullable=True, comment="of the last link that is gone"),
        sa.Column(
            "sealed_seq",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="up to here the seal goes",
        ),
        sa.Column("seal", sa.LargeBinary(), nullable=True, comment="HMAC of sealed_seq, its hash and what was pruned"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_sub", name=op.f("audit_heads_pkey")),
        comment="where each user's chain ends",
    )
    op.create_table(
        "erasure_links",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False, comment="1-based, without gaps"),
        sa.Column("user_sha256", sa.Text(), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "hash",
            sa.LargeBinary(),
            nullable=False,
            comment="sha256 of the link before, the number and the tombstone",
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("erasure_links_pkey")),
        comment="the chain of all tombstones; written by a trigger alone",
    )
    op.create_table(
        "erasure_heads",
        sa.Column("chain", sa.Text(), nullable=False, comment="erasures"),
        sa.Column("seq", sa.BigInteger(), nullable=False, comment="of the last link"),
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="of the last link"),
        sa.Column(
            "sealed_seq",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="up to here the seal goes",
        ),
        sa.Column("seal", sa.LargeBinary(), nullable=True, comment="HMAC of sealed_seq and its hash"),
        sa.PrimaryKeyConstraint("chain", name=op.f("erasure_heads_pkey")),
        comment="where the chain of the tombstones ends: one row",
    )


def make_service_tables() -> None:
    op.create_table(
        "installation_keys",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "wrapped_key",
            sa.LargeBinary(),
            nullable=False,
            comment="by the master key, bound to name and created_at",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("installation_keys_pkey")),
        comment="keys of the whole installation, which outlive a change of the master key",
    )
    op.create_table(
        "token_revocations",
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "jti_sha256", sa.LargeBinary(), nullable=True, comment="of the one token meant; null: all of the subject's"
        ),
        sa.Column("subject_sha256", sa.LargeBinary(), nullable=True, comment="whose tokens"),
        sa.Column(
            "issued_before",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="of the subject's tokens, those issued up to here",
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "expires_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="when the token ends by itself; null: not known",
        ),
        sa.Column("why", sa.Text(), nullable=False),
        sa.CheckConstraint("num_nonnulls(jti_sha256, issued_before) = 1", name=op.f("token_revocations_what_check")),
        sa.PrimaryKeyConstraint("number", name=op.f("token_revocations_pkey")),
        comment="tokens that are refused although they have not expired; a token itself stands nowhere",
    )
    op.create_table(
        "readmissions",
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("user_sha256", sa.LargeBinary(), nullable=False),
        sa.Column(
            "actor_sha256",
            sa.LargeBinary(),
            nullable=False,
            comment="whose tokens count as issued then for this user",
        ),
        sa.Column(
            "admitted_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("readmissions_pkey")),
        comment="services that began again for an erased user, by an explicit call",
    )


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(GATHERED_BEFORE)))
    for table in ("audit", "erasures"):
        op.execute(f"DROP TRIGGER link ON {table}")
    op.execute("DROP TRIGGER keep ON audit")
    op.execute("DROP POLICY chains ON audit")
    op.execute("DROP POLICY chains ON erasures")
    op.execute("REVOKE SELECT (user_sub) ON audit FROM casebank_worker")
    op.execute("REVOKE SELECT (user_sub, erased_at) ON erasures FROM casebank_worker")
    op.execute("GRANT UPDATE ON audit TO casebank_service")
    for table in (*USER_TABLES, *SERVICE_TABLES):
        op.drop_table(table)
    for name in ("link_new", "link_erasure", "keep_entries", "keep_links", "keep_head"):
        op.execute(f"DROP FUNCTION casebank_{name}")
    op.execute("DROP FUNCTION casebank_link")
    op.execute("DROP FUNCTION casebank_link_hash")
    op.execute("DROP FUNCTION casebank_audit_content")
    op.drop_column("audit", "mac")
