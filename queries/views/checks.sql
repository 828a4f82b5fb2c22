-- name: checks
-- what: Counts per service (or scope) from which `facta doctor` tells what is missing.
-- key: check String, subject String

SELECT check, subject, bad, total
FROM (
    SELECT 'no content' AS check, service AS subject,
           countIf(isNull(request_items) AND isNull(response_items)) AS bad, count() AS total
    FROM evidence.turns FINAL
    WHERE tenant = {tenant:String}
    GROUP BY service
    UNION ALL
    SELECT 'no session ids', service, countIf(empty(claims)), count()
    FROM evidence.sessions FINAL
    WHERE tenant = {tenant:String}
    GROUP BY service
    UNION ALL
    SELECT 'sealed by shape', session.service, countIf(sighting.sealed_by = 'shape'), count()
    FROM (SELECT * FROM evidence.sightings FINAL WHERE tenant = {tenant:String}) AS sighting
    LEFT JOIN (SELECT * FROM evidence.sessions FINAL WHERE tenant = {tenant:String}) AS session
        ON session.session_id = sighting.session_id
    GROUP BY session.service
    UNION ALL
    SELECT 'sealed in plain telemetry', arrayJoin(if(empty(turn.scopes), [''], turn.scopes)),
           countIf(sighting.state = 'whole' AND NOT has(sighting.observers, 'tap')), count()
    FROM (SELECT * FROM evidence.sightings FINAL WHERE tenant = {tenant:String}) AS sighting
    LEFT JOIN (SELECT * FROM evidence.turns FINAL WHERE tenant = {tenant:String}) AS turn
        ON turn.session_id = sighting.session_id AND turn.turn_id = sighting.turn_id
    GROUP BY arrayJoin(if(empty(turn.scopes), [''], turn.scopes))
)
WHERE bad > 0
ORDER BY check, subject
