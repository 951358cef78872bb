/** The process in which one file of figures is measured. */
import type { Measure } from './figure.ts'

const [name] = process.argv.slice(2)
const { measure }: { measure: Measure } = await import(`./figures/${name}.ts`)
const results = await measure()
process.send?.(results, () => process.disconnect())
