export { L1 } from './l1.ts'
