/** Fails when the browser bundle exceeds its limit: `npm run check:size`. */
import { bundleForBrowsers, BOUND_KB } from './bundle.ts'

/** How many modules are listed when it fails. */
const LARGEST = 20

const { minified, gzipped, modules } = await bundleForBrowsers()
const size = `${kilobytes(gzipped)} gzipped (${kilobytes(minified)} minified)`
if (gzipped <= BOUND_KB * 1_000) {
  process.stdout.write(`The browser bundle has ${size}; the limit is ${BOUND_KB} kB.\n`)
} else {
  const lines = modules.slice(0, LARGEST).map(({ name, minified: bytes }) => {
    const share = Math.round((100 * bytes) / minified)
    return `  ${String(bytes).padStart(6)} bytes  ${String(share).padStart(2)} %  ${name}`
  })
  process.stderr.write(
    `The browser bundle has ${size}, more than ${BOUND_KB} kB. Its largest modules, minified:\n${lines.join('\n')}\n`,
  )
  process.exitCode = 1
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1_000).toFixed(1)} kB`
}
