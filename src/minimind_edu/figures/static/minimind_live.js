// x
export default { render() {} };
