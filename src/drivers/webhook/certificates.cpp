#include "drivers/webhook/certificates.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "net/freed.hpp"

namespace gs::webhook {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Extensions = std::vector<std::pair<int, std::string>>;  // NID, as openssl.cnf writes it

constexpr int kVersion3 = 2;
constexpr int kSerialBits = 127;

Error failed(const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  Error error{ErrorCode::Internal, what + (reason == nullptr ? "" : std::string(": ") + reason)};
  ERR_clear_error();
  return error;
}

Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_of(out.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(out.get());
}

Certificate parse_certificate(std::string_view text) {
  const Bio in = reader(text);
  return Certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

// Nobody can be asked for a passphrase.
int no_passphrase(char*, int, int, void*) { return -1; }

Key parse_key(std::string_view text) {
  const Bio in = reader(text);
  return Key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
}

Result<Instant> instant_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return failed("a certificate's time can't be read");
  return Instant{static_cast<std::int64_t>(timegm(&parts)) * 1000};
}

std::string name_of(const GENERAL_NAME& name) {
  if (name.type == GEN_DNS)
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(name.d.dNSName)),
            static_cast<std::size_t>(ASN1_STRING_length(name.d.dNSName))};
  if (name.type != GEN_IPADD) return {};
  const int family = ASN1_STRING_length(name.d.iPAddress) == 4 ? AF_INET : AF_INET6;
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family, ASN1_STRING_get0_data(name.d.iPAddress), text.data(), text.size());
  return text.data();
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> found;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i)
    found.push_back(name_of(*sk_GENERAL_NAME_value(names.get(), i)));
  return normal_names(std::move(found));
}

// An address as it is always written; empty: it is none.
std::string address_of(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (const int family : {AF_INET, AF_INET6})
    if (inet_pton(family, name.c_str(), bytes.data()) == 1)
      return inet_ntop(family, bytes.data(), text.data(), text.size());
  return {};
}

// A number that no other certificate has, in the certificate and, for people, in a subject.
Result<std::string> number(X509* certificate) {
  const Number serial(BN_new());
  if (BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1)
    return failed("no random numbers");
  BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate));
  char* hex = BN_bn2hex(serial.get());
  std::string text(hex);
  OPENSSL_free(hex);
  return text.substr(0, 8);
}

Status add_extensions(X509* certificate, X509* issuer, const Extensions& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [id, value] : extensions) {
    const Extension made(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
    if (!made || X509_add_ext(certificate, made.get(), -1) != 1)
      return failed("a certificate can't have '" + value + "'");
  }
  return ok_status();
}

struct Wanted {
  std::string subject;
  bool is_numbered = false;  // the subject ends with the serial number
  Instant from, to;
  Extensions extensions;
};

// Signed by `issuer`, or by itself where that is null.
Result<KeyPair> made(const Wanted& wanted, X509* issuer, EVP_PKEY* issuer_key) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate) return failed("no key could be made");
  X509* out = certificate.get();
  X509_set_version(out, kVersion3);
  const Result<std::string> serial = number(out);
  if (!serial) return serial.error();
  const std::string subject = wanted.subject + (wanted.is_numbered ? " " + *serial : "");
  ASN1_TIME_set(X509_getm_notBefore(out), static_cast<std::time_t>(wanted.from.ms / 1000));
  ASN1_TIME_set(X509_getm_notAfter(out), static_cast<std::time_t>(wanted.to.ms / 1000));
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(subject.data()),
                             static_cast<int>(subject.size()), -1, 0);
  X509* signer = issuer == nullptr ? out : issuer;
  X509_set_issuer_name(out, X509_get_subject_name(signer));
  X509_set_pubkey(out, key.get());
  if (Status status = add_extensions(out, signer, wanted.extensions); !status)
    return status.error();
  if (X509_sign(out, issuer_key == nullptr ? key.get() : issuer_key, EVP_sha256()) == 0)
    return failed("a certificate can't be signed");
  return KeyPair{pem_of(out), pem_of(key.get())};
}

}  // namespace

Result<std::vector<std::string>> certificates_of(std::string_view bundle) {
  std::vector<std::string> found;
  const Bio in = reader(bundle);
  while (const Certificate one{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)})
    found.push_back(pem_of(one.get()));
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (found.empty() || !is_end) return failed("no certificate in PEM");
  ERR_clear_error();
  return found;
}

Result<CertificateFacts> read_certificate(std::string_view text) {
  const Certificate certificate = parse_certificate(text);
  if (!certificate) return failed("no certificate in PEM");
  const Result<Instant> from = instant_of(X509_get0_notBefore(certificate.get()));
  const Result<Instant> to = instant_of(X509_get0_notAfter(certificate.get()));
  if (!from) return from.error();
  if (!to) return to.error();
  return CertificateFacts{*from, *to, names_of(certificate.get())};
}

Status check_pair(const KeyPair& pair) {
  const Certificate certificate = parse_certificate(pair.certificate);
  if (!certificate) return failed("no certificate in PEM");
  const Key key = parse_key(pair.key);
  if (!key) return failed("no private key in PEM, without a passphrase");
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return failed("the key does not belong to the certificate");
  return ok_status();
}

bool is_signed_by(std::string_view certificate, std::string_view authority) {
  const Certificate signed_one = parse_certificate(certificate);
  const Certificate signer = parse_certificate(authority);
  const bool holds =
      signed_one && signer && X509_verify(signed_one.get(), X509_get0_pubkey(signer.get())) == 1;
  ERR_clear_error();
  return holds;
}

Result<KeyPair> make_authority(Instant now, Duration life) {
  // Numbered: two that follow each other can be told apart.
  const Wanted wanted{"gpu-scheduler webhook authority",
                      true,
                      now - kBackdated,
                      now + life,
                      {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                       {NID_key_usage, "critical,keyCertSign,cRLSign"},
                       {NID_subject_key_identifier, "hash"}}};
  return made(wanted, nullptr, nullptr);
}

Result<KeyPair> make_serving(const KeyPair& authority, const std::vector<std::string>& names,
                             Instant now, Duration life) {
  const Certificate issuer = parse_certificate(authority.certificate);
  const Key issuer_key = parse_key(authority.key);
  if (!issuer || !issuer_key) return failed("the authority can't be read");
  const Result<Instant> end = instant_of(X509_get0_notAfter(issuer.get()));
  if (!end) return end.error();
  std::string alternatives;
  for (const std::string& name : normal_names(names))
    alternatives += (alternatives.empty() ? "" : ",") +
                    std::string(address_of(name).empty() ? "DNS:" : "IP:") + name;
  const Wanted wanted{"gpu-scheduler webhook",
                      false,
                      now - kBackdated,
                      std::min(now + life, *end),
                      {{NID_basic_constraints, "critical,CA:FALSE"},
                       {NID_key_usage, "critical,digitalSignature"},
                       {NID_ext_key_usage, "serverAuth"},
                       {NID_authority_key_identifier, "keyid:always"},
                       {NID_subject_alt_name, alternatives}}};
  return made(wanted, issuer.get(), issuer_key.get());
}

std::vector<std::string> normal_names(std::vector<std::string> names) {
  for (std::string& name : names) {
    if (const std::string address = address_of(name); !address.empty()) name = address;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> service_names(const std::string& service, const std::string& name_space) {
  const std::string in_namespace = service + "." + name_space;
  return {service, in_namespace, in_namespace + ".svc", in_namespace + ".svc.cluster.local"};
}

}  // namespace gs::webhook
