export { type AdmissionChannels, admissionChannels } from './channels.ts'
export { Gate, type Permit } from './gate.ts'
