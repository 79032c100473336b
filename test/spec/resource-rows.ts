import { row } from './interface-row.ts';

/** Section 2 of the interface, without the configuration of the local proxy. */

export const RESOURCES = {
  '2.2-equal-when-nothing-to-drop': row(
    'Short, new or protected history: forwarded tokens equal the original ones.',
    'core/plan',
  ),
  '2.2-degraded-goes-on': row(
    'Memory away: the request goes on without it, and the state says so.',
    'proxy/handle',
  ),
  '2.3-api-key-placeholder': row(
    '$API_KEY in a custom header or query value is a secret.',
    'adapters/files/config-file',
  ),
  '2.1-prefix': row(
    'An API key is a live prefix and an opaque secret, shown once.',
    'core/memory-api/service-key',
  ),
  '2.1-scopes': row('Scopes are read, write and receipt:read.', 'core/memory-api/keys'),
  '2.1-revoked': row('A revoked key stops authenticating.', 'core/memory-api/keys'),
  '2.2-signed': row('A receipt is signed and found by its id.', 'service/src/core/jws'),
  '2.2-original_input_tokens': row(
    'The receipt has the estimated input received.',
    'service/src/core/receipts',
  ),
  '2.2-forwarded_input_tokens': row(
    'The receipt has the estimated input sent on.',
    'service/src/core/receipts',
  ),
  '2.2-recalled_tokens': row(
    'The receipt has the memory tokens added.',
    'service/src/core/receipts',
  ),
  '2.2-output_tokens': row(
    'The receipt has the provider’s output tokens when told.',
    'service/src/core/receipts',
  ),
  '2.2-memory_mode': row(
    'The receipt has the requested memory access.',
    'service/src/core/receipts',
  ),
  '2.2-memory_state': row(
    'The receipt has what happened with memory.',
    'service/src/core/receipts',
  ),
  '2.2-compression_mode': row(
    'The receipt has the effective compression mode.',
    'service/src/core/receipts',
  ),
  '2.3-one-configuration': row(
    'One base URL, credential, API style, default model, list of models.',
    'service/src/core/providers',
  ),
  '2.3-api-style': row(
    'The API style is one of the three dialects.',
    'service/src/server/console/providers',
  ),
  '2.3-secret-vaulted': row(
    'The provider secret is never shown, logged or put on a receipt.',
    'service/src/server/console/providers',
  ),
  '2.3-endpoint-stored': row(
    'An auto-admitted provider keeps the endpoint it was created with.',
    'service/src/server/console/providers',
  ),
  '2.2-latency': row('The receipt has the latency of the request.', 'service/src/core/receipts'),
  '2.3-presets': row(
    'Preset providers come from a public catalog and fetch no model list.',
    'service/src/server/console/provider-probes',
  ),
  '2.3-catalog-refresh': row(
    'The catalog refreshes itself, with a committed snapshot behind it.',
    'adapters/catalog/served-catalog',
  ),
  '2.3-discovery-only': row(
    'A provider without a usable endpoint or variable is never routable.',
    'service/src/core/providers',
  ),
  '2.3-fetch-models': row(
    'Only custom channels fetch models, by a guarded probe.',
    'service/src/server/console/provider-probes',
  ),
  '2.3-typed-model-ids': row(
    'A model id can be typed by hand where the upstream lists none.',
    'service/src/server/console/providers',
  ),
  '2.3-custom-kinds': row(
    'Custom is a self-hosted gateway, a regional provider, an enterprise proxy or another.',
    'service/src/server/console/providers',
  ),
};
