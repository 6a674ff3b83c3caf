-- extension
SELECT extname, extversion, extnamespace::regnamespace::text
FROM pg_extension

-- schema
SELECT nspname, nspowner::regrole::text, acl.items
FROM pg_namespace, LATERAL (SELECT array_agg(item::text ORDER BY item::text) AS items FROM unnest(nspacl) item) acl
WHERE nspname !~ '^(pg_|information_schema$)'

-- default privileges
SELECT concat_ws(' ', defaclrole::regrole, defaclnamespace, defaclobjtype), defaclacl::text[]
FROM pg_default_acl

-- setting
SELECT CASE setrole WHEN 0 THEN 'every role' ELSE setrole::regrole::text END, setconfig
FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
WHERE datname = current_database()

-- role
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls,
    rolconnlimit, rolconfig, memberships.granted
FROM pg_roles, LATERAL (
    SELECT array_agg(membership ORDER BY membership) AS granted
    FROM (SELECT concat_ws(' ', roleid::regrole, to_jsonb(m) - 'oid' - 'roleid' - 'member' - 'grantor') AS membership
          FROM pg_auth_members m WHERE member = pg_roles.oid) each
) memberships
WHERE rolname !~ '^pg_'

-- relation
SELECT c.relname, c.relkind, c.relpersistence, c.relowner::regrole::text, c.relrowsecurity, c.relforcerowsecurity,
    c.relreplident, c.reloptions, toast.reloptions, amname, c.reltablespace, acl.items, obj_description(c.oid, 'pg_class')
FROM pg_class c
LEFT JOIN pg_am ON pg_am.oid = c.relam
LEFT JOIN pg_class toast ON toast.oid = c.reltoastrelid
CROSS JOIN LATERAL (SELECT array_agg(item::text ORDER BY item::text) AS items FROM unnest(c.relacl) item) acl
WHERE c.relnamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')

-- column
SELECT c.relname || '.' || attname,
    row_number() OVER (PARTITION BY c.oid ORDER BY attnum),  -- attnum itself has a gap for each column that was dropped
    format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity, attgenerated,
    attcollation::regcollation::text, attstorage, attcompression, attstattarget, attoptions, acl.items,
    col_description(c.oid, attnum)
FROM pg_attribute
JOIN pg_class c ON c.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
CROSS JOIN LATERAL (SELECT array_agg(item::text ORDER BY item::text) AS items FROM unnest(attacl) item) acl
WHERE c.relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped

-- constraint
SELECT concat(nullif(conrelid, 0)::regclass, nullif(contypid, 0)::regtype, '.', conname), contype,
    pg_get_constraintdef(oid), convalidated, condeferrable, condeferred, obj_description(oid, 'pg_constraint')
FROM pg_constraint
WHERE connamespace = 'public'::regnamespace

-- index
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisunique, indisprimary, indisvalid, indisclustered,
    indisreplident, indnullsnotdistinct, obj_description(indexrelid, 'pg_class')
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = 'public'::regnamespace

-- function
SELECT p.oid::regprocedure::text, CASE WHEN prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) END, proowner::regrole::text,
    prosecdef, provolatile, proparallel, proleakproof, procost, prorows, proconfig, acl.items,
    obj_description(p.oid, 'pg_proc')
FROM pg_proc p, LATERAL (SELECT array_agg(item::text ORDER BY item::text) AS items FROM unnest(proacl) item) acl
WHERE pronamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')

-- trigger
SELECT tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger')
FROM pg_trigger
WHERE NOT tgisinternal

-- policy
SELECT polrelid::regclass || '.' || polname, polcmd, polpermissive, roles.names, pg_get_expr(polqual, polrelid),
    pg_get_expr(polwithcheck, polrelid), obj_description(oid, 'pg_policy')
FROM pg_policy, LATERAL (
    SELECT array_agg(CASE role WHEN 0 THEN 'every role' ELSE role::regrole::text END ORDER BY role::regrole::text) AS names
    FROM unnest(polroles) role
) roles

-- sequence
SELECT seqrelid::regclass::text, seqtypid::regtype::text, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
    owner.refobjid::regclass || '.' || attname
FROM pg_sequence
LEFT JOIN pg_depend owner ON owner.objid = seqrelid AND owner.refobjsubid > 0
LEFT JOIN pg_attribute ON attrelid = owner.refobjid AND attnum = owner.refobjsubid

-- other object
SELECT type || ' ' || identity
FROM (SELECT DISTINCT classid, objid, objsubid FROM pg_depend) each,
    pg_identify_object(classid, objid, objsubid)
WHERE (schema IS NULL OR schema = 'public') AND identity !~ '(pg_toast|pg_catalog|information_schema)\.|RI_Constraint'
    AND type NOT IN ('extension', 'operator of access method', 'function of access method')  -- those go with a class
    AND NOT EXISTS (
        SELECT FROM pg_depend of_extension
        WHERE of_extension.classid = each.classid AND of_extension.objid = each.objid AND of_extension.deptype = 'e'
    )
