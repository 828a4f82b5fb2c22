-- name: sessions_with_sightings
-- what: Sessions that hold a sealed value of the given looks, in the order of their ids.
-- key: session_id String

SELECT DISTINCT session_id
FROM evidence.sightings FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({kind:String} = '' OR kind = {kind:String})
  AND ({state:String} = '' OR state = {state:String})
  AND ({sealed_by:String} = '' OR sealed_by = {sealed_by:String})
  AND ({sha256:String} = '' OR sha256 = {sha256:String})
  AND ({sha256_decoded:String} = '' OR sha256_decoded = {sha256_decoded:String})
  AND ({any_hash:String} = '' OR sha256 = {any_hash:String} OR sha256_decoded = {any_hash:String})
  AND ({service:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.sessions FINAL
      WHERE tenant = {tenant:String} AND service = {service:String}))
  AND ({turn_id:String} = '' OR session_id IN (
      SELECT session_id FROM evidence.turns FINAL
      WHERE tenant = {tenant:String} AND turn_id = {turn_id:String}))
  AND ({first_page:Bool} OR session_id >= {after_session_id:String})
ORDER BY session_id
LIMIT {limit:UInt32}
