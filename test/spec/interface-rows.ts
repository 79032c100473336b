import { type InterfaceRow, row } from './interface-row.ts';
import { RESOURCES } from './resource-rows.ts';

/**
 * The interface as a list: every statement that a test can check, under an id that tests cite.
 *
 * Every row is cited by a test, as `[id]` in its name or as a comment `// spec: id` beside it. Statements
 * about what others do (a provider's own retention, say) and those marked "not shown" are no rows.
 */

const PURPOSE = {
  '1.1-no-translation': row('A request leaves in the dialect in which it came.', 'proxy/handle'),
  '1.2-recall-added': row('What memory recalls is added to the prompt.', 'proxy/handle'),
  '1.2-text-saved': row('Eligible visible text is saved as memory.', 'proxy/handle'),
  '1.5-native-bytes': row('Answers, JSON and SSE, pass byte for byte.', 'proxy/relay'),
  '1.5-unknown-passes': row(
    'Unknown fields, event order, reasoning, tool state and provider ids pass unchanged.',
    'core/plan/item-edits',
  ),
  '1.6-loopback': row('The local proxy runs on the user’s machine, on loopback.', 'local/server'),
  '1.6-provider-direct': row(
    'Model traffic goes from the local proxy straight to the provider.',
    'adapters/network/undici-upstream',
  ),
  '1.7-key-stays-local': row(
    'The provider key lies in the protected config.',
    'adapters/files/config-file',
  ),
  '1.7-client-picks-model': row('The client’s model goes on as it is.', 'proxy/handle'),
  '1.7-no-receipts': row('The local proxy makes no hosted receipts.', 'core/http/routes'),
  '1.8-memory-without-shortening': row(
    'Memory is saved and recalled while nothing is shortened.',
    'proxy/handle',
  ),
  '1.3-safe-to-drop': row('History is shortened only where memory provably holds it.', 'proxy'),
  '1.8-measured-without-saving': row(
    'A reduction can be measured while nothing is saved.',
    'proxy',
  ),
  '1.9-visible-text-only': row(
    'Reasoning, thinking, tool arguments and partial JSON are never memory.',
    'core/answer/answer-reader',
  ),
  '1.6-hosted-memory': row(
    'Recall and saved text may use the hosted memory service.',
    'adapters/memory-client',
  ),
  '1.7-vault': row(
    'The hosted proxy keeps provider keys in an encrypted vault.',
    'service/src/server/vault',
  ),
  '1.1-own-upstream': row(
    'The hosted proxy forwards to the caller’s own configured upstream.',
    'service/src/server/models/provider-choice',
  ),
  '1.4-receipt': row(
    'Every hosted request leaves a receipt.',
    'service/src/server/models/receipt-facts',
  ),
  '1.7-model-routed': row(
    'The hosted proxy routes a model against the allowed ones.',
    'service/src/core/routing',
  ),
};

const LOCAL_CONFIGURATION = {
  '2.4-bind-address': row('It binds 127.0.0.1:8765 unless told.', 'adapters/files/config-file'),
  '2.4-memory-mode': row(
    'The memory mode is read-write unless told.',
    'adapters/files/config-file',
  ),
  '2.4-compression-mode': row(
    'The compression mode is deterministic unless told.',
    'adapters/files/config-file',
  ),
  '2.4-input-budget': row(
    'The input budget is 8,192 estimated tokens.',
    'adapters/files/config-file',
  ),
  '2.4-recalled-context': row(
    'At most 512 estimated tokens are recalled.',
    'adapters/files/config-file',
  ),
  '2.4-elision-enabled': row('proxy.elisionEnabled is on.', 'adapters/files/config-file'),
  '2.4-elision-keep-rounds': row('proxy.elisionKeepRounds is 4.', 'adapters/files/config-file'),
  '2.4-elision-capture-limit': row('proxy.elisionCaptureLimit is 8.', 'adapters/files/config-file'),
  '2.4-config-home': row(
    '$SVC_CONFIG_HOME is the config folder when set.',
    'adapters/files/config-file',
  ),
  '2.4-xdg-config-home': row('Else it is $XDG_CONFIG_HOME/svc.', 'adapters/files/config-file'),
  '2.4-home-config': row('Else it is ~/.config/svc.', 'adapters/files/config-file'),
  '2.4-folder-mode': row('The folder has mode 0700.', 'adapters/files/config-file'),
  '2.4-file-mode': row('The config file has mode 0600.', 'adapters/files/config-file'),
  '2.4-local-token': row(
    'The local token goes to the client and to nobody else.',
    'core/http/header-rules',
  ),
  '2.4-provider-key': row(
    'The provider key goes to the provider and to nobody else.',
    'core/http/header-rules',
  ),
  '2.4-captured-text': row('Captured text is what request and answer said anyway.', 'proxy/handle'),
  '2.4-full-request': row(
    'The whole request goes to the provider and is kept nowhere.',
    'proxy/handle',
  ),
  '2.4-memory-base': row('The hosted memory API base is a setting.', 'core/settings/config-schema'),
  '2.4-service-key': row(
    'The service key goes with memory calls and nowhere else.',
    'adapters/memory-client',
  ),
  '2.4-recall-query': row('The recall query goes to the hosted service.', 'adapters/memory-client'),
};

const MODES = {
  '3.1-values': row('Memory modes are off, read, write and read-write.', 'core/http/modes'),
  '3.1-default-by-scopes': row(
    'Without a header the mode is the strongest allowed one.',
    'core/http/modes',
  ),
  '3.1-lower-only': row(
    'x-svc-memory-mode can lower the mode and never raise it.',
    'core/http/modes',
  ),
  '3.2-values': row(
    'Compression modes are passthrough, shadow and deterministic.',
    'core/http/modes',
  ),
  '3.2-header-overrides': row(
    'x-svc-compression-mode overrides the setting for that request only.',
    'core/http/modes',
  ),
  '3.2-passthrough': row(
    'passthrough: the original request and what was recalled.',
    'proxy/handle',
  ),
  '3.2-shadow': row('shadow: the original request, the reduction only measured.', 'core/plan'),
  '3.3-elided_tool_output': row(
    'elided_tool_output: stored outputs are removed, and can be got.',
    'core/shortening',
  ),
  '3.3-shadow_only': row('shadow_only: measured, forwarded whole.', 'core/plan'),
  '3.2-effective': row('The effective compression mode is told when it differs.', 'core/plan/plan'),
  '3.3-header': row('x-svc-continuity-state is decided for each request.', 'core/plan/plan'),
  '3.3-not_needed': row('not_needed: nothing needed removing, forwarded as it is.', 'core/plan'),
  '3.3-bypassed': row('bypassed_*: a check did not pass, the full request goes on.', 'core/plan'),
  '3.3-not_applicable': row('not_applicable: the mode needs no decision.', 'core/plan'),
  '3.2-deterministic': row(
    'deterministic: older exchanges go when memory holds them.',
    'core/shortening/omissions',
  ),
  '3.2-always-kept': row(
    'The last two exchanges, instructions, tool state and reasoning stay.',
    'core/shortening/omissions',
  ),
  '3.3-committed': row(
    'committed: covered older exchanges are removed.',
    'core/shortening/omissions',
  ),
  '3.1-scopes-read-write': row('A key that reads and writes: read-write.', 'core/http/modes'),
  '3.1-scopes-read': row('A key that only reads: read.', 'core/http/modes'),
  '3.1-scopes-write': row('A key that only writes: write.', 'core/http/modes'),
  '3.1-scopes-none': row('A key that does neither: off.', 'core/http/modes'),
  '3.2-account-defaults': row(
    'Account defaults apply where no header does.',
    'service/src/core/account-settings',
  ),
};

const ENDPOINTS = {
  '4-no-own-fields': row('No body field of the service’s own is added.', 'proxy/relay'),
  '4.4-chat': row(
    'POST /v1/chat/completions goes to the Chat Completions upstream.',
    'core/http/routes',
  ),
  '4.4-responses': row('POST /v1/responses goes to the Responses upstream.', 'core/http/routes'),
  '4.4-messages': row('POST /v1/messages goes to the Anthropic upstream.', 'core/http/routes'),
  '4.4-models': row('GET /v1/models is relayed from the upstream.', 'core/http/routes'),
  '4.4-health': row('GET /health answers while the process lives.', 'local/server'),
  '4.4-livez': row('GET /livez answers while the process lives.', 'local/server'),
  '4.4-json-and-sse': row('JSON and SSE are both served.', 'proxy/relay'),
  '4.4-zstd': row('Request bodies in zstd are decoded.', 'adapters/encoding/body-decoder'),
  '4.4-no-translation': row('A dialect without an upstream is not translated.', 'proxy/handle'),
  '4.4-messages-style': row('Messages traffic needs the anthropic_messages style.', 'proxy/handle'),
  '4.4-v1-base': row(
    'OpenAI clients use the /v1 base of the local address.',
    'cli/clients/print-config',
  ),
  '4.4-local-proxy-header': row('Answers carry x-svc-local-proxy.', 'core/plan/plan'),
  '4.4-states': row('Answers carry the memory and the compression state.', 'core/plan/plan'),
  '4.4-token-estimates': row(
    'Answers carry original, forwarded and recalled tokens.',
    'core/plan/plan',
  ),
  '4.4-continuity-header': row('Answers carry x-svc-continuity-state.', 'core/plan/plan'),
  '4.5-two-names': row('Two names run the same program.', 'package.json'),
  '4.5-start': row('start starts the proxy.', 'cli/proxy/start'),
  '4.5-print-config-codex': row(
    'print-config codex: wire API responses, local /v1 base, token from SVC_LOCAL_PROXY_TOKEN.',
    'cli/clients/print-config',
  ),
  '4.5-print-config-claude': row(
    'print-config claude: ANTHROPIC_BASE_URL without /v1, ANTHROPIC_API_KEY is the local token.',
    'cli/clients/print-config',
  ),
  '4.5-config-token': row('config token prints the local token.', 'cli/clients/config-token'),
  '4.5-setup': row('setup is an interactive wizard.', 'cli/setup/wizard'),
  '4.5-catalog-cache': row(
    'The wizard’s catalog look-up is cached for 24 hours, for discovery only.',
    'adapters/catalog',
  ),
  '4.5-doctor': row('doctor checks and reports.', 'cli/doctor'),
  '4.2-list': row(
    'GET /v1/svc/requests lists receipts up to a limit.',
    'service/src/server/operations/receipts',
  ),
  '4.2-one': row(
    'GET /v1/svc/requests/{receipt_id} gives one receipt.',
    'service/src/server/operations/receipts',
  ),
  '4.2-scope': row(
    'Receipts need the scope receipt:read.',
    'service/src/server/operations/operations',
  ),
  '4.3-health': row(
    'GET /health, /livez and /readyz on the hosted base.',
    'service/src/server/health',
  ),
  '4.6-console': row(
    'Keys, configurations and account defaults are console operations.',
    'service/src/server/console',
  ),
  '4.1-chat': row(
    'POST /v1/chat/completions on the hosted base.',
    'service/src/server/models/model-server',
  ),
  '4.1-responses': row(
    'POST /v1/responses on the hosted base.',
    'service/src/server/models/model-server',
  ),
  '4.1-messages': row(
    'POST /v1/messages on the hosted base.',
    'service/src/server/models/model-server',
  ),
  '4.1-evidence': row(
    'Hosted answers carry the receipt id, states and estimates.',
    'core/plan/plan',
  ),
  '4.1-base-and-key': row(
    'A client changes its base URL and its key, nothing else.',
    'service/src/server/models/model-server',
  ),
};

const RULES = {
  '5.5-provider-auth-last': row(
    'Provider authentication goes in last, after caller and custom headers.',
    'core/http/header-rules',
  ),
  '5.5-headers-removed': row(
    'Service, cookie, forwarding, client-IP and hop-by-hop headers are removed.',
    'core/http/header-rules',
  ),
  '5.6-https-only': row(
    'Upstreams are https with certificates checked.',
    'adapters/network/undici-upstream',
  ),
  '5.6-pinned-public': row(
    'The address is public, checked, and the one that is dialled.',
    'adapters/network/undici-upstream',
  ),
  '5.6-auto-admitted-pinned': row(
    'The address of an auto-admitted provider is pinned and public too.',
    'service/src/adapters/network/provider-pools',
  ),
  '5.7-local-token': row(
    'The client shows the local token where its key would be.',
    'core/http/gate',
  ),
  '5.7-provider-key-upstream': row('The upstream sees the provider key.', 'core/http/header-rules'),
  '6-sse-unchanged': row('SSE events keep names, order and ids.', 'proxy/relay'),
  '7-401': row('401: the token is missing, malformed or wrong.', 'core/http/gate'),
  '7-422-invalid-mode': row(
    '422: a mode that does not exist; nothing is forwarded.',
    'core/http/modes',
  ),
  '7-5xx': row('5xx: a provider or a dependency failed, with a code.', 'core/errors'),
  '7-bypass-no-error': row('A bypass is no error: the complete request goes on.', 'proxy/handle'),
  '7-memory-away-no-error': row('Memory away is no error: the request goes on.', 'proxy/handle'),
  '8-saved-once': row('Unchanged history is saved once.', 'adapters/store'),
  '8-capture-deadline': row('Captures run beside the request, under a deadline.', 'proxy/handle'),
  '8-recall-fast': row('Recall asks no model, and has a deadline.', 'proxy/handle'),
  '9-v1': row('Model paths carry the segment v1.', 'core/http/routes'),
  '9-package': row('The package is svc-local-proxy 0.1.2.', 'package.json'),
  '8-two-exchanges-kept': row(
    'The two most recent exchanges always stay.',
    'core/shortening/omissions',
  ),
  '9-elision-protections': row(
    'Continuity, capture hygiene and elision protect as hosted does.',
    'core/shortening/removal',
  ),
  '8-catalog-24-hours': row('The wizard’s catalog is cached for 24 hours.', 'adapters/catalog'),
  '5.7-service-key': row('The memory service sees the service key.', 'adapters/memory-client'),
  '7-409': row(
    '409: stale generation or idempotency conflict, retried by the state told.',
    'adapters/memory-client',
  ),
  '7-429': row(
    '429: the plan’s rate is exceeded, Retry-After is honoured.',
    'adapters/memory-client',
  ),
  '7-503': row(
    '503: the rate limiter cannot be asked, the request is blocked.',
    'adapters/memory-client',
  ),
  '5.1-api-key': row(
    'Hosted endpoints take the API key as bearer or x-api-key.',
    'service/src/server/authenticator',
  ),
  '5.2-receipt-scope': row(
    'Receipt endpoints need receipt:read.',
    'service/src/server/operations/operations',
  ),
  '5.3-401-403': row(
    'A bad key is 401, a key without permission 403.',
    'service/src/server/authenticator',
  ),
  '5.4-shown-once': row(
    'Keys are shown once and stop working when revoked.',
    'service/src/server/console/keys',
  ),
  '6-audit': row(
    'The console shows audit events, sources and purge receipts.',
    'service/src/server/console',
  ),
  '7-403': row('403: the key or tenant may not do this.', 'core/memory-api/faults'),
  '8-plan-rates': row(
    'Rates and the number of configurations are limited by plan.',
    'service/src/core/limits',
  ),
  '8-slot-freed': row(
    'Deleting a provider configuration frees its slot in the plan.',
    'service/src/server/console/providers',
  ),
  '9-receipt-v1': row(
    'Receipt paths carry the segment v1.',
    'service/src/server/operations/operations',
  ),
};

export const INTERFACE_ROWS: Readonly<Record<string, InterfaceRow>> = {
  ...PURPOSE,
  ...RESOURCES,
  ...LOCAL_CONFIGURATION,
  ...MODES,
  ...ENDPOINTS,
  ...RULES,
};
