-- Roles belong to the whole cluster: another database may have them already, or make them at the same moment.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['casebank_worker', 'casebank_service', 'casebank_eraser'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END $$;

-- The service becomes one of the other two for a transaction, and a login that is no superuser becomes the service.
DO $$ BEGIN
    GRANT casebank_worker, casebank_eraser TO casebank_service;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        GRANT casebank_service TO CURRENT_USER;
    END IF;
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
