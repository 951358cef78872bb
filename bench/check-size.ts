/** Fails when what browsers download has grown beyond its bound: `npm run check:size`. */
import { bundleForBrowsers, BOUND_KB } from './bundle.ts'

/** Modules that are named when it fails. */
const LARGEST = 20

const { minified, gzipped, modules } = await bundleForBrowsers()
const size = `${kilobytes(gzipped)} gzipped (${kilobytes(minified)} minified)`
if (gzipped <= BOUND_KB * 1_000) {
  process.stdout.write(`The browser bundle has ${size}, at most ${BOUND_KB} kB are allowed.\n`)
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
