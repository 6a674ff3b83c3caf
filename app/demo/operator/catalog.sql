SELECT json_build_object(
  'columns', (
    SELECT coalesce(json_agg(json_build_array(n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                                              a.attnotnull, a.atthasdef) ORDER BY n.nspname, c.relname, a.attnum), '[]')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')),
  'foreign_keys', (
    SELECT coalesce(json_agg(json_build_array(child.relname, ca.attname, parent.relname, pa.attname)
                             ORDER BY child.relname, ca.attname), '[]')
    FROM pg_constraint k
    JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid
    JOIN pg_attribute ca ON ca.attrelid = k.conrelid AND ca.attnum = k.conkey[1]
    JOIN pg_attribute pa ON pa.attrelid = k.confrelid AND pa.attnum = k.confkey[1]
    WHERE k.contype = 'f'),
  'uniques', (
    SELECT coalesce(json_agg(json_build_array(c.relname, a.attname) ORDER BY c.relname, a.attname), '[]')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
    WHERE i.indisunique AND i.indnatts = 1 AND n.nspname NOT IN ('pg_catalog', 'pg_toast')),
  'enums', (
    SELECT coalesce(json_object_agg(typname, labels), '{}') FROM (
      SELECT t.typname, json_agg(e.enumlabel ORDER BY e.enumsortorder) AS labels
      FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid GROUP BY t.typname) AS enum),
  'views', (
    SELECT coalesce(json_agg(json_build_array(viewname, definition) ORDER BY viewname), '[]')
    FROM pg_views WHERE schemaname = 'work'),
  'sequences', (
    SELECT coalesce(json_agg(json_build_array(s.relname, c.relname, a.attname) ORDER BY s.relname), '[]')
    FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_class c ON c.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid WHERE d.deptype = 'a')
)::text
