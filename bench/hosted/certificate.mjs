import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { PROVIDER_NAME } from './service.mjs';

/** For the stand-in provider, made by openssl. */
export function makeCertificate(folder) {
  const [key, certificate] = ['key.pem', 'certificate.pem'].map((name) => join(folder, name));
  const names = `subjectAltName=DNS:${PROVIDER_NAME},IP:127.0.0.1`;
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const about = ['-days', '2', '-subj', `/CN=${PROVIDER_NAME}`, '-addext', names];
  execFileSync(
    'openssl',
    ['req', '-x509', ...curve, '-keyout', key, '-out', certificate, ...about],
    {
      stdio: 'ignore',
    },
  );
  return { key, certificate };
}
