import { bundleForBrowsers, TARGET_KB } from '../bundle.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'

/** Modules that are named. */
const LARGEST = 10

/**
 * What an application pays for all of `rivulet` and `rivulet/operators` in a browser: both bundled together, minified,
 * without rxjs, gzipped at level 9, in kB of 1,000 bytes.
 */
export const measure: Measure = async () => {
  const { minified, gzipped, modules } = await bundleForBrowsers()
  return [
    result(
      'browser-bundle',
      gzipped / 1_000,
      { atMost: TARGET_KB },
      {
        bytes: gzipped,
        minifiedBytes: minified,
        largest: modules.slice(0, LARGEST).map(({ name, minified: bytes }) => `${name} ${bytes}`),
        unit: 'kB gzipped',
      },
    ),
  ]
}
