-- name: turns
-- what: Model requests with their responses, in order within each session.
-- key: session_id String, ordinal UInt32, row_key String

SELECT session_id, row_key, turn_id, ordinal, parent_turn_id, link_basis, service, agent,
       provider, surface, protocol, endpoint, deployment, api, operation, request_model,
       response_model, response_id, previous_response_id, conversation_id, store, include,
       background, effort, thinking, reasoning_context, attempt, started_ns, ended_ns,
       reported_cost, input_tokens, cached_tokens, output_tokens, reasoning_tokens,
       finish_reasons, error, request_head, request_items, response_head, response_items,
       context_of, context_kept, context_rewritten, observers, conventions, scopes, schema_urls,
       trace_ids, span_ids, not_observable, flags, instructions_commit, tools_commit,
       attributes_commit
FROM evidence.turns FINAL
WHERE tenant = {tenant:String}
  AND ({session_id:String} = '' OR session_id = {session_id:String})
  AND ({turn_id:String} = '' OR turn_id = {turn_id:String})
  AND ({provider:String} = '' OR provider = {provider:String})
  AND ({request_model:String} = '' OR request_model = {request_model:String})
  AND ({response_model:String} = '' OR response_model = {response_model:String})
  AND ({response_id:String} = '' OR response_id = {response_id:String})
  AND ({conversation_id:String} = '' OR conversation_id = {conversation_id:String})
  AND ({agent:String} = '' OR agent = {agent:String})
  AND ({trace_id:String} = '' OR has(trace_ids, {trace_id:String}))
  AND ({service:String} = '' OR service = {service:String})
  AND ({since:Int64} = 0 OR started_ns >= {since:Int64})
  AND ({until:Int64} = 0 OR started_ns < {until:Int64})
  AND ({first_page:Bool} OR (session_id, ordinal, row_key) > ({after_session_id:String}, {after_ordinal:UInt32}, {after_row_key:String}))
ORDER BY session_id, ordinal, row_key
LIMIT {limit:UInt32}
