/** Fails when a browser bundle exceeds its limit: `npm run check:size`. */
import { bundleForBrowsers, PARTS } from './bundle.ts'
import type { PartWithLimit } from './bundle.ts'

/** How many modules are listed when it fails. */
const LARGEST = 20

for (const part of PARTS) await check(part)

async function check({ name, module, boundKb }: PartWithLimit): Promise<void> {
  const { minified, gzipped, modules } = await bundleForBrowsers(module)
  const size = `${kilobytes(gzipped)} gzipped (${kilobytes(minified)} minified)`
  if (gzipped <= boundKb * 1_000) {
    process.stdout.write(`The browser bundle of ${name} has ${size}; the limit is ${boundKb} kB.\n`)
    return
  }
  const lines = modules.slice(0, LARGEST).map(({ name: source, minified: bytes }) => {
    const share = Math.round((100 * bytes) / minified)
    return `  ${String(bytes).padStart(6)} bytes  ${String(share).padStart(2)} %  ${source}`
  })
  process.stderr.write(
    `The browser bundle of ${name} has ${size}, more than ${boundKb} kB. Its largest modules, minified:\n${lines.join('\n')}\n`,
  )
  process.exitCode = 1
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1_000).toFixed(1)} kB`
}
