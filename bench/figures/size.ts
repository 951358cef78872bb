import { bundleForBrowsers } from '../bundle.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'

/** How many modules are listed. */
const LARGEST = 10

/**
 * The size of all of `rivulet` and `rivulet/operators` in a browser: bundled together, minified, without rxjs, gzipped at level 9,
 * in kB of 1,000 bytes. `npm run check` has the limit. `clientAlone` in the details: an application that uses only `createClient`.
 */
export const measure: Measure = async () => {
  const { minified, gzipped, modules } = await bundleForBrowsers()
  const client = await bundleForBrowsers(`export { createClient } from 'rivulet'`)
  return [
    result('browser-bundle', gzipped / 1_000, undefined, {
      clientAlone: rounded(client.gzipped / 1_000),
      bytes: gzipped,
      minifiedBytes: minified,
      largest: modules.slice(0, LARGEST).map(({ name, minified: bytes }) => `${name} ${bytes}`),
      unit: 'kB gzipped',
    }),
  ]
}
